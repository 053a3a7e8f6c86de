#!/bin/sh
# Bring Chromium for the browser tests where it may be installed; without it those tests skip and say so.
set -eu
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing Chromium for the browser tests"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } >/dev/null 2>&1 \
    || echo "Chromium could not be installed: the browser tests will skip"
else
  echo "no Chromium here, and it cannot be installed without root on Debian: the browser tests will skip"
fi
