//! A host whose own firewall drops packets: sending fails with EPERM, as it does when the table of
//! connections is full.

use crate::{ShutDown, bytes};
use apus::{CallError, Endpoint, EndpointBuilder, FailureKind, PollMode};
use apus_driver::loopback::{LoopbackHost, LoopbackNetwork};
use apus_driver::{
    Arrival, Burst, Capabilities, Driver, NetworkError, NetworkReport, ReceiveHalf, TransmitHalf,
};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

/// Refused packets, until they are reported.
type Refused = Arc<Mutex<Vec<(SocketAddr, Vec<u8>)>>>;

/// A driver that refuses one burst of `one_in`, as the system does.
struct Firewalled {
    inner: LoopbackHost,
    one_in: u32,
}

struct Transmit {
    inner: Box<dyn TransmitHalf>,
    refused: Refused,
    one_in: u32,
    bursts: u32,
}

struct Receive {
    inner: Box<dyn ReceiveHalf>,
    refused: Refused,
}

impl Driver for Firewalled {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let Self { inner, one_in } = *self;
        let (transmit, receive) = Box::new(inner).split();
        let refused = Refused::default();
        let transmit = Transmit { inner: transmit, refused: refused.clone(), one_in, bursts: 0 };
        (Box::new(transmit), Box::new(Receive { inner: receive, refused }))
    }
}

impl TransmitHalf for Transmit {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        self.bursts += 1;
        if !self.bursts.is_multiple_of(self.one_in) {
            return self.inner.send(burst);
        }
        let first = burst.each().next().unwrap().to_vec();
        self.refused.lock().unwrap().push((burst.to, first));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn has_pending(&self) -> bool {
        self.inner.has_pending()
    }

    fn packet_limit(&mut self, to: SocketAddr) -> usize {
        self.inner.packet_limit(to)
    }
}

impl ReceiveHalf for Receive {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        self.inner.receive(limit)
    }

    fn may_have_more(&self) -> bool {
        self.inner.may_have_more()
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        self.inner.drain(sink);
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        for (peer, packet) in self.refused.lock().unwrap().drain(..) {
            sink(NetworkReport { peer, error: NetworkError::NotPermitted, packet: &packet });
        }
        self.inner.reports(sink);
    }
}

impl AsFd for Receive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

fn endpoint(network: &LoopbackNetwork, one_in: u32) -> Endpoint {
    let driver = Firewalled { inner: network.host(), one_in };
    EndpointBuilder::default().poll_mode(PollMode::Block).with_driver(Box::new(driver)).unwrap()
}

/// Both sides lose packets to their own firewalls, and no call fails.
fn all_calls_survive(one_in: u32, calls: usize) {
    let network = LoopbackNetwork::new();
    let (client, server) = (endpoint(&network, one_in), endpoint(&network, one_in + 1));
    std::thread::scope(|scope| {
        let _shutdown = ShutDown(&[&server]);
        scope.spawn(|| {
            while let Ok(request) = server.recv_request() {
                let payload = request.payload().clone();
                // Fails if the client has the response already.
                let _ = request.reply(payload);
            }
        });
        for number in 0..calls {
            let request = bytes(number, [100, 1_416, 20_000][number % 3]);
            let response = client.call(server.local_addr(), request.clone());
            let response = response.unwrap_or_else(|error| panic!("call {number}: {error}"));
            assert_eq!(response, request, "call {number}");
        }
    });
    let refused = |endpoint: &Endpoint| endpoint.metrics().protocol.recovery.sends_not_permitted;
    assert!(refused(&client) > 0 && refused(&server) > 0, "nothing was refused");
}

#[test]
fn one_packet_of_a_hundred_is_refused_and_no_call_fails() {
    all_calls_survive(100, 1_000);
}

#[test]
fn one_packet_of_five_is_refused_and_no_call_fails() {
    all_calls_survive(5, 60);
}

#[test]
fn if_nothing_passes_the_failure_names_the_firewall() {
    let network = LoopbackNetwork::new();
    let (client, server) = (endpoint(&network, 1), endpoint(&network, 1_000));
    let error = client.call(server.local_addr(), "hello").unwrap_err();
    let CallError::Failed(failed) = &error else { panic!("{error}") };
    assert_eq!(failed.kind, FailureKind::NotPermitted);
    assert!(error.to_string().contains("firewall"), "{error}");
    assert!(error.to_string().contains("not executed"), "{error}");
}
