"""The CEL language: parse, check, cost, evaluate. Pure, and knows no devices."""
