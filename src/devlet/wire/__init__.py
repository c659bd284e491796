"""The gRPC messages of every API version, generated from our .proto files. No logic."""
