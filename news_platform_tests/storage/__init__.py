"""Tests of the storage door, on a local folder, the S3 emulator and the Google shim alike."""
