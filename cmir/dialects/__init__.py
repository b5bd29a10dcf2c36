"""The dialects, one a file, each with its grammar at the top."""
