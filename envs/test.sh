#!/usr/bin/env bash
# Run the tests. What some need beside Python is a browser, LaTeX, a SLURM of one machine, and axe-core, which checks
# pages for accessibility. As root on Debian it is installed; tests whose programs are missing are skipped.
cd "$(dirname "$0")/.." || exit
missing=
while read -r program packages; do
    command -v "$program" > /dev/null || missing+=" $packages"
done <<'END'
chromium chromium
chromedriver chromium-driver
npm npm
java default-jre-headless
shellcheck shellcheck
gcc gcc
pdflatex texlive-latex-base texlive-latex-recommended texlive-latex-extra
pdflatex texlive-science texlive-publishers texlive-fonts-recommended
slurmctld slurmctld
slurmd slurmd
squeue slurm-client
munged munge
END
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "run: installing$missing"
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of words
    apt-get install -y -qq --no-install-recommends $missing > /dev/null
fi
if [ ! -e .venv/node_modules/axe-core ] && command -v npm > /dev/null; then
    npm install --silent --no-save --ignore-scripts --prefix .venv axe-core@4.14.1 > /dev/null
fi
exec .venv/bin/python -m pytest "$@"
