#!/bin/sh
# install: what `make install` puts in place works from there, with the whole of it read-only and without the tree.

[ -z "$SAN" ] || { echo "1..0 # SKIP a matter of the plain build"; exit; }
said=$SCRATCH/said
home=$SCRATCH/root/usr
n=0
holds() # NAME COMMAND...
{
    name=$1 n=$((n + 1))
    shift
    if "$@" >"$said" 2>&1; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        sed 's/^/# /' "$said"
    fi
}
sums() # of all that is installed
{
    find "$home" -type f -exec sha256sum {} + | sort
}
refuses() # kbgen, without its archives
{
    "$home/bin/kbgen" small.yaml -o none
    [ $? = 3 ] && [ -s "$said" ] && [ ! -e none ]
}

holds "make install" make install DESTDIR="$SCRATCH/root" PREFIX=/usr
chmod -R a-w "$home"
# Root may write where it likes: what is there is compared before and after as well.
before=$(sums)
mkdir "$SCRATCH/work"
cp tests/small.yaml docs/guide/11_your_own.c "$SCRATCH/work"
cd "$SCRATCH/work" || exit 1
holds "kbgen --version" "$home/bin/kbgen" --version
holds "kbgen makes a simulator" "$home/bin/kbgen" small.yaml
holds "which runs" build/small info
holds "a kernel finds the headers of the library" "$home/bin/kbgen" small.yaml -k 11_your_own.c -o own
holds "kbgen of the tree makes one too" "$KBGEN" small.yaml -o of-tree
holds "and they are the same bytes" cmp build/small of-tree
holds "nothing was written to where kbgen is" test "$before" = "$(sums)"
mv "$home/lib/kbgen" "$home/lib/elsewhere"
holds "without its archives kbgen says so, with status 3" refuses
chmod -R u+w "$SCRATCH/root"
echo "1..$n"
