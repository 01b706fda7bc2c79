"""What the simulators of fal and Replicate have in common: models, running generations, signed callbacks and faults."""
