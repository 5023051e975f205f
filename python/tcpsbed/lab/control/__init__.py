"""Control through the network: step responses, stability, predictors."""
