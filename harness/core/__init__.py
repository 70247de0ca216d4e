"""The contract of a method and what runs it: types, asks, prompts, parameters, driver, journal."""
