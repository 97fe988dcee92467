//! Compiler messages about traits that are not services.

#[test]
fn the_compiler_says_what_is_no_service() {
    trybuild::TestCases::new().compile_fail("tests/compile/*.rs");
}
