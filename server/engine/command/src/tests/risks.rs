//! Options that a rule for a prefix does not reach.
//!
//! Rule: an option counts however it is written.

use super::tables::at_work;

#[test]
fn options_that_run_programs_or_write_files_are_not_covered_by_a_prefix() {
    const RISKY: &str = r#"
tar xf a.tar --to-c=./x
tar --to-command ./x -xf a
tar --use=./x -xf a
tar cIf ./x a
tar -xIf ./x a
cargo --config x test
cargo test --config=x
cargo test --manifest-path ../x/Cargo.toml
cargo build --target-dir=/tmp/x
go test -exec ./x
go build -toolexec=./x
go vet -vettool=./x
go build -o ../x
go build -overlay x.json
make CC=./x
make X='$(shell id)'
make -f x
make -kf x
make --eval=x
npm --prefix ../x test
npm test -C ../x
npm --userconfig=x test
fd -x ./x
fd -HX ./x
fd --exec-b ./x
sort --comp=./x f
sort -uo f f
split --filter=./x f
split --fil ./x f
bat --pager=./x f
gcc -wrapper ./x a.c
gcc -fplugin=./x a.c
gcc -B./x a.c
scp -S ./x a b
scp -o ProxyCommand=./x a b
sqlite3 a.db '.shell id'
psql -c '\! id'
gdb -ex 'shell id' a
pytest -p x
pytest -c x
eslint -f ./x src
eslint -c ./x src
curl -o f x
curl -sSo f x
curl -T f x
curl -d @f x
curl --data-b @f x
curl --upload f x
wget -O f x
wget --post-f=f x
rg --pr ./x foo
rsync -avze ./x a b
perl -ne 1 f
make $X
"#;
    const PLAIN: &str = r#"
tar -xzf a.tar
tar tf a.tar
cargo test -p engine parser::tests
cargo clippy --all-targets -- -D warnings
cargo check --workspace
go test ./...
go build ./cmd/app
make -j4 all
npm run build
npm test -- --watch=false
npx tsc --noEmit
fd -H name
sort -u f
split -l 5 f
pytest -q -x tests/test_a.py
eslint src
curl -fsSL x
rg --hidden foo
rsync -av a b
python3 manage.py test
docker compose ps
gcc -O2 -c a.c
psql -c 'select 1'
"#;
    let covered = |line: &&str| at_work(line).commands[0].prefix_covered;
    let reached: Vec<&str> = RISKY.trim().lines().filter(covered).collect();
    let out_of_reach: Vec<&str> = PLAIN.trim().lines().filter(|line| !covered(line)).collect();
    assert_eq!((reached, out_of_reach), (vec![], vec![]));
}
