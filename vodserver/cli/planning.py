"""Commands that plan a store before it is bought: the model and its calibration."""
