"""Take a manifest to its documented outcome, on either API and with either control plane."""
