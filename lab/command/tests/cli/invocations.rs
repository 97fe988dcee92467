//! Snapshots of invocations: the files in `cmd/` contain commands with their output. After an
//! intended change `TRYCMD=overwrite cargo test -p apus-lab` rewrites them.

#[test]
fn invocations_print_what_their_files_show() {
    trycmd::TestCases::new().case("tests/cli/cmd/*.trycmd");
}
