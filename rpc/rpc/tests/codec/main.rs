//! Arguments and results of arbitrary bytes, on a small stack. `check` is the body of the fuzz
//! target `rpc_codec`.

mod check;
#[path = "../../../../fuzz/mutate.rs"]
mod mutate;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use proptest::prelude::*;

/// Half the stack of a thread of tokio: a handler's own frames are below the decoder's.
const STACK: usize = 1 << 20;

/// Runs a test on a thread with a small stack.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(test).unwrap().join().unwrap();
}

#[test]
fn stored_inputs_of_the_fuzzer_still_pass() {
    on_a_small_stack(|| replay::replay("rpc_codec", check::check));
}

#[test]
fn mutated_inputs_pass() {
    on_a_small_stack(|| mutate::mutate("rpc_codec", check::check));
}

/// Each way of nesting, repeated until the message ends.
#[test]
fn endless_nesting_of_every_kind_is_refused() {
    on_a_small_stack(|| {
        let levels: [&[u8]; 9] = [
            &[1],
            &[2],
            &[3],
            &[4, 1],
            &[4, 2],
            &[5, 1, 7],
            &[6, 1],
            &[7, 1],
            &[1, 4, 1, 6, 1, 5, 1, 0],
        ];
        for level in levels {
            for length in [100, 1_000, 100_000] {
                check::check(&level.repeat(length));
            }
        }
    });
}

proptest! {
    #[test]
    fn any_bytes_are_a_value_or_an_error(
        bytes in proptest::collection::vec(0_u8..9, 0..400),
        end in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        check::check(&[bytes, end].concat());
    }
}
