//! The loom model: it finds the flaw in one order of the steps, and no violation in the other.
//!
//! ```sh
//! RUSTFLAGS="--cfg apus_loom" cargo test --release -p apus-labs --lib handoff
//! ```
//!
//! The model has one message with an ack, and one or two waiting threads. A model of apus itself
//! checks the handoff of the product.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use loom::thread;

use super::socket::{Order, Socket};

/// Checks every interleaving: each message is handed over at most once, and no thread is woken
/// needlessly.
fn check(order: Order, receivers: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let socket = Arc::new(Socket::new(order, receivers));
        let threads: Vec<_> = (0..receivers)
            .map(|receiver| {
                let socket = Arc::clone(&socket);
                thread::spawn(move || socket.receive(receiver, &|_| ()))
            })
            .collect();
        for id in 0..receivers as u64 {
            socket.deliver(id, thread::yield_now);
        }
        let mut got: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        got.sort_unstable();
        assert_eq!(got, (0..receivers as u64).map(Some).collect::<Vec<_>>());
        let counts = socket.counts();
        assert!(counts.handoffs <= counts.messages, "handed over twice: {counts:?}");
        assert_eq!(counts.spurious, 0, "woken needlessly");
    });
}

#[test]
fn model_finds_the_double_handoff_if_the_message_is_published_first() {
    let found = catch_unwind(AssertUnwindSafe(|| check(Order::PublishFirst, 1)));
    let panic = found.expect_err("some interleaving hands the message over twice");
    let text = panic.downcast_ref::<String>().expect("an assertion's text");
    assert!(text.contains("handed over twice"), "{text}");
}

#[test]
fn model_finds_no_violation_if_the_packet_is_queued_first() {
    check(Order::EnqueueFirst, 1);
    check(Order::EnqueueFirst, 2);
}
