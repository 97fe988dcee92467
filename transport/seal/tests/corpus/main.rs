//! The body of the fuzz target `seal`, run over its stored inputs and random inputs.

#[path = "../../../../fuzz/mutate.rs"]
mod mutate;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod seal;

#[test]
fn stored_inputs_of_the_fuzzer_do_no_harm() {
    replay::replay("seal", seal::run);
}

/// Each input is a whole conversation, so the usual number would take minutes; `APUS_FUZZ_INPUTS`
/// sets it.
#[test]
fn mutated_inputs_do_no_harm() {
    if std::env::var_os("APUS_FUZZ_INPUTS").is_none() {
        eprintln!("SKIPPED: APUS_FUZZ_INPUTS is not set");
        return;
    }
    mutate::mutate("seal", seal::run);
}
