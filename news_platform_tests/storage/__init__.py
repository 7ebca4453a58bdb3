"""Tests of storage on a local folder, the S3 emulator and the Google shim."""
