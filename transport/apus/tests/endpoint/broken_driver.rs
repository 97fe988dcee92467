//! A driver that fails for good: each call gets the cause, the one that met it as well.

use apus::{CallError, Closed, EndpointBuilder, Execution};
use apus_driver::loopback::{LoopbackHost, LoopbackNetwork};
use apus_driver::{Burst, Capabilities, Driver, ReceiveHalf, TransmitHalf};
use std::io;
use std::net::SocketAddr;

/// A driver whose sends the system refuses.
struct Refused(LoopbackHost);

struct RefusedTransmit(Box<dyn TransmitHalf>);

impl Driver for Refused {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let (transmit, receive) = Box::new(self.0).split();
        (Box::new(RefusedTransmit(transmit)), receive)
    }
}

impl TransmitHalf for RefusedTransmit {
    fn send(&mut self, _: &Burst<'_>) -> io::Result<()> {
        Err(io::Error::other("send: function not implemented"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn has_room(&self) -> bool {
        true
    }

    fn has_pending(&self) -> bool {
        false
    }

    fn packet_limit(&mut self, to: SocketAddr) -> usize {
        self.0.packet_limit(to)
    }
}

#[test]
fn the_call_that_meets_a_broken_driver_gets_the_cause_like_the_next_one() {
    let network = LoopbackNetwork::new();
    let driver = Box::new(Refused(network.host()));
    let endpoint = EndpointBuilder::default().with_driver(driver).unwrap();
    let to = SocketAddr::from(([10, 0, 0, 2], 1));
    for number in 0..2 {
        let error = endpoint.call(to, "hello").unwrap_err();
        assert!(error.to_string().contains("function not implemented"), "{number}: {error}");
        assert_eq!(error.execution(), Execution::NotExecuted, "{number}: no server had it");
        match (number, error) {
            (0, CallError::Interrupted { why: Closed::Driver(_), .. }) => {}
            (1, CallError::Closed(Closed::Driver(_))) => {}
            (_, error) => panic!("{number}: {error:?}"),
        }
    }
}
