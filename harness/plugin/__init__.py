"""How lm_eval sees us: the model class, its arguments, the tasks' base class, several processes."""
