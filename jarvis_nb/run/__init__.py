"""Around one run: approval, replay under another policy, many asks at once."""
