"""The claim controller: claims are made for pods, reserved, released and removed."""
