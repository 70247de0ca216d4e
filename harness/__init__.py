"""What methods and tasks share: types, asks, driver, retrieval, rules, scoring, training, publishing."""
