#!/bin/sh
# setup: what .ci/setup says and does on machines with and without the packages, root and apt, acted by stand-ins.

SCRATCH=${SCRATCH:-/tmp/setup.$$}
said=$SCRATCH/said
n=0
holds() # NAME COMMAND...
{
    name=$1 n=$((n + 1))
    shift
    if "$@"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        sed 's/^/# /' "$said"
    fi
}
act() # NAME BODY: a stand-in for a program
{
    printf '#!/bin/sh\n%s\n' "$2" >"$SCRATCH/bin/$1"
    chmod +x "$SCRATCH/bin/$1"
}
setup() # runs it with nothing but the stand-ins and the two programs it needs
{
    PATH="$SCRATCH/bin" .ci/setup "$@" >"$said" 2>&1
    status=$?
}

rm -rf "$SCRATCH/bin"
mkdir -p "$SCRATCH/bin"
ln -s "$(command -v grep)" "$(command -v sh)" "$SCRATCH/bin"

act id 'echo 0'
act dpkg-query 'echo installed'
setup check
holds "with all there: it succeeds" test $status = 0
holds "and says nothing" test ! -s "$said"

act dpkg-query 'case "$*" in *re2c*) echo config-files;; *) echo installed;; esac'
setup
holds "without apt: status 3" test $status = 3
holds "and the name of the package" grep -q '^ *re2c$' "$said"

act apt-get 'echo "apt-get $*" >&2'
act id 'echo 1000'
setup
holds "without root: status 3" test $status = 3
holds "and apt is left alone" test -z "$(grep '^apt-get' "$said")"

act id 'echo 0'
setup
holds "with both: it succeeds" test $status = 0
holds "says what it installs" grep -qx 'setup: installing re2c' "$said"
holds "and installs it" grep -q '^apt-get.* install .* re2c$' "$said"

act dpkg-query 'case "$*" in *simpy*) echo config-files;; *) echo installed;; esac'
setup check
holds "the tests need no peer" test ! -s "$said"
setup bench
holds "the bench does" grep -qx 'setup: installing python3-simpy3' "$said"

act dpkg-query 'case "$*" in *re2c*) echo config-files;; *) echo installed;; esac'

act apt-get 'case "$*" in *install*) exit 100;; esac'
setup
holds "an installation that fails: status 3" test $status = 3
setup nonsense
holds "another word: status 2" test $status = 2
echo "1..$n"
