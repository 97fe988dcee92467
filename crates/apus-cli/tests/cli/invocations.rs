//! What does an invocation print? The files in `cmd/` show it; `TRYCMD=overwrite cargo test -p apus-cli`
//! writes them anew after a change that is meant.

#[test]
fn invocations_print_what_their_files_show() {
    trycmd::TestCases::new().case("tests/cli/cmd/*.trycmd");
}
