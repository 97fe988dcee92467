//! Cases about the time trace of a live process, each of which runs in a separate process.

use apus::introspection::{Error, Process};
use apus::trace::{self, Event, FreezeReason, Sampling};
use apus::{Endpoint, EndpointBuilder};
use std::process::id;

/// A client and its server.
struct Pair {
    client: Endpoint,
    server: Endpoint,
}

impl Pair {
    fn new() -> Self {
        let over_the_network = || EndpointBuilder::default().local(false);
        let server = over_the_network().bind("127.0.0.1:0").unwrap();
        Self { client: over_the_network().client().unwrap(), server }
    }

    fn call(&self) {
        self.client.send(self.server.local_addr(), "hello", 0).unwrap();
        self.server.recv_request().unwrap().reply("HELLO").unwrap();
        assert_eq!(self.client.recv_completion().unwrap().result.unwrap(), "HELLO");
    }
}

/// Returns the number of calls in the process's trace.
fn calls(process: &Process) -> usize {
    process.trace().unwrap().all(Event::Call).count()
}

pub(crate) fn its_trace_is_read_frozen_and_resumed() {
    trace::set_sampling(Sampling::All);
    let pair = Pair::new();
    pair.call();
    let process = Process::new(id());
    let status = process.trace_status().unwrap();
    assert_eq!((status.sampling.as_str(), status.period), ("all", 1));
    assert!(status.recording && status.threads > 0 && status.records > 0, "{status:?}");
    assert_eq!((status.frozen, status.frozen_nanos, status.changed), (None, 0, false));
    let going_on = process.trace().unwrap();
    assert_eq!((going_on.head.pid, going_on.head.frozen), (id(), None));
    assert_eq!(calls(&process), 1);

    let frozen = process.freeze_trace().unwrap();
    assert_eq!((frozen.recording, frozen.frozen), (false, Some(FreezeReason::Demand)));
    assert!(frozen.changed && !process.freeze_trace().unwrap().changed, "only once");
    pair.call();
    let kept = process.trace().unwrap();
    assert_eq!(kept.head.frozen, trace::frozen());
    assert_eq!(calls(&process), 1, "nothing is recorded");
    let later = process.trace_status().unwrap();
    assert!(later.frozen_nanos > frozen.frozen_nanos, "{later:?}");
    let read: usize = kept.threads.iter().map(|thread| thread.records.len()).sum();
    assert_eq!((later.records, later.threads), (read as u64, kept.threads.len() as u64));

    let resumed = process.resume_trace().unwrap();
    assert_eq!((resumed.recording, resumed.frozen, resumed.changed), (true, None, true));
    assert!(!process.resume_trace().unwrap().changed);
    // The endpoint resumes with its next pass.
    while calls(&process) == 1 {
        pair.call();
    }
}

pub(crate) fn it_refuses_to_freeze_without_a_trace() {
    trace::set_sampling(Sampling::Off);
    let pair = Pair::new();
    pair.call();
    let process = Process::new(id());
    let status = process.trace_status().unwrap();
    assert_eq!((status.recording, status.period, status.records), (false, 0, 0));
    let Err(Error::Refused { message, .. }) = process.freeze_trace() else { panic!() };
    assert!(message.contains("records no time trace"), "{message}");
    assert_eq!(process.trace().unwrap().threads.len(), 0);
}
