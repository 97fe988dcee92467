//! A full socket: the leader sleeps until there is room, and timers are served in the meantime.

use apus::{CallOptions, EndpointBuilder, PollMode};
use apus_driver::{Arrival, Burst, Capabilities, Driver, NetworkReport, ReceiveHalf, TransmitHalf};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A driver that is full after one packet until `open` is set. It never receives.
struct Stuffed {
    open: Arc<AtomicBool>,
    sent: Arc<AtomicBool>,
    full: bool,
    /// Not writable while the driver is full, as a socket would be.
    stream: UnixStream,
}

impl Driver for Stuffed {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            segments_per_send: 1,
            receive_offload: false,
            priorities: false,
            ecn: false,
            reports: false,
            busy_poll_usecs: 0,
            receive_buffer: 1 << 20,
            link_mbps: None,
            spray_ports: 0,
        }
    }

    fn local_addr(&self) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], 1))
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let receive = Silent(self.stream.try_clone().unwrap());
        (self, Box::new(receive))
    }
}

impl TransmitHalf for Stuffed {
    fn send(&mut self, _: &Burst<'_>) -> io::Result<()> {
        self.full = true;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.full && self.open.load(Ordering::SeqCst) {
            self.full = false;
            self.sent.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        !self.full
    }

    fn has_pending(&self) -> bool {
        self.full
    }

    fn packet_limit(&mut self, _: SocketAddr) -> usize {
        1472
    }
}

struct Silent(UnixStream);

impl ReceiveHalf for Silent {
    fn receive(&mut self, _: usize) -> io::Result<usize> {
        Ok(0)
    }

    fn may_have_more(&self) -> bool {
        false
    }

    fn drain(&mut self, _: &mut dyn FnMut(Arrival<'_>)) {}

    fn reports(&mut self, _: &mut dyn FnMut(NetworkReport<'_>)) {}
}

impl AsFd for Silent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[test]
fn a_thread_that_waits_for_a_full_socket_sleeps_and_serves_timers() {
    for poll in [PollMode::Block, PollMode::Hybrid(Duration::from_micros(50))] {
        let (mut stream, mut other) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut stuffing = 0;
        while let Ok(bytes) = stream.write(&[0; 4096]) {
            stuffing += bytes;
        }
        let (open, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let driver = Stuffed { open: open.clone(), sent: sent.clone(), full: false, stream };
        let endpoint =
            EndpointBuilder::default().poll_mode(poll).with_driver(Box::new(driver)).unwrap();
        let to = SocketAddr::from(([10, 0, 0, 2], 1));
        let options = CallOptions::new().timeout(Duration::from_millis(50));
        let error = endpoint.call_with(to, "hello", options).unwrap_err();
        assert!(error.to_string().contains("deadline"), "{error}");
        let metrics = endpoint.metrics().engine;
        // Some timers of the protocol are due in this time, every 2.5 ms.
        assert!((1..200).contains(&metrics.sleeps), "{poll}: {metrics:?}");
        assert!(metrics.kicks < 20, "{poll}: {metrics:?}");

        open.store(true, Ordering::SeqCst);
        other.read_exact(&mut vec![0; stuffing]).unwrap();
        while !sent.load(Ordering::SeqCst) {
            assert!(endpoint.recv_completion_timeout(Duration::from_millis(1)).unwrap().is_none());
        }
    }
}
