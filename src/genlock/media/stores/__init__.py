"""Media stores: a folder, or a bucket of S3-compatible storage."""
