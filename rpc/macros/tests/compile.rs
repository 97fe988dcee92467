//! What the compiler says about traits that are no services.

#[test]
fn the_compiler_says_what_is_no_service() {
    trybuild::TestCases::new().compile_fail("tests/compile/*.rs");
}
