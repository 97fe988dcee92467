//! Client of a listening doctor.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;

use super::packet::{MIN_LEN, Observation, ProbeRequest, RequestKind};
use super::socket::ClassSocket;
use apus_measure::clock;
use apus_measure::error::Error;

/// Time limit for a response. Chosen by us: ten times the delay of a datacenter and a sleeping
/// thread.
const TIMEOUT: Duration = Duration::from_millis(150);

/// Number of attempts before a missing response counts as silence. Chosen by us: at 10 % loss, a
/// probe fails wrongly once in a hundred thousand times.
const TRIES: usize = 5;

/// Result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// A response arrived.
    Response(ProbeResponse),
    /// No response arrived.
    Silence,
    /// The system, or a host on the path, reported an error.
    Refused(Errno),
}

/// A response and its packet's properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeResponse {
    pub(super) observation: Observation,
    /// Traffic class of the response on arrival.
    pub(super) class: u8,
    /// Nanoseconds from the request to the response.
    pub(super) time: u64,
}

/// Sends requests to a listener.
#[derive(Debug)]
pub(super) struct ProbeClient {
    socket: ClassSocket,
    session: u64,
    number: u32,
}

impl ProbeClient {
    pub(super) fn new(peer: SocketAddr) -> Result<Self, Error> {
        let socket = ClassSocket::towards(peer)?;
        // The session distinguishes responses to this client from all others.
        Ok(Self { socket, session: RandomState::new().hash_one(peer), number: 0 })
    }

    /// Returns the path MTU stored by the system, in bytes.
    pub(super) fn path_mtu(&self) -> Option<usize> {
        self.socket.path_mtu()
    }

    /// Sends a packet of `length` bytes with traffic class `class`, and requests a response of
    /// `room` bytes with the same class. Repeats the request if no response arrives.
    pub(super) fn echo(
        &mut self,
        length: usize,
        class: u8,
        room: usize,
    ) -> Result<ProbeResult, Error> {
        self.socket.set_timeout(TIMEOUT)?;
        Ok(self.retry(|client| client.request(RequestKind::Echo, length, class, room)))
    }

    /// Sends the shortest packet once.
    pub(super) fn echo_once(&mut self) -> Result<ProbeResult, Error> {
        self.socket.set_timeout(TIMEOUT)?;
        Ok(self.request(RequestKind::Echo, MIN_LEN, 0, MIN_LEN))
    }

    /// Sends `packets` packets of `length` bytes at once. Returns the number of packets that
    /// arrived and the number of receive calls; `None` if no response arrives.
    pub(super) fn train(
        &mut self,
        packets: usize,
        length: usize,
    ) -> Result<Option<(u32, u32)>, Error> {
        /// On slow links the response waits behind the burst.
        const LONG: Duration = Duration::from_millis(500);
        self.session = self.session.wrapping_add(1);
        let request = self.new_request(RequestKind::Count, 0, MIN_LEN);
        let one = filled(&request, length.max(MIN_LEN));
        let all = one.repeat(packets);
        if self.socket.send(&all, 0, one.len()).is_err() {
            // No segmentation offload, or no room for the whole burst.
            for packet in all.chunks(one.len()) {
                // A packet that cannot be sent counts as lost.
                let _ = self.socket.send(packet, 0, packet.len());
            }
        }
        self.socket.set_timeout(LONG)?;
        let tally = self.retry(|client| client.request(RequestKind::Tally, MIN_LEN, 0, MIN_LEN));
        Ok(match tally {
            ProbeResult::Response(answer) => {
                Some((answer.observation.packets, answer.observation.receives))
            }
            ProbeResult::Silence | ProbeResult::Refused(_) => None,
        })
    }

    fn retry(&mut self, ask: impl Fn(&mut Self) -> ProbeResult) -> ProbeResult {
        for _ in 1..TRIES {
            let reply = ask(self);
            if !matches!(reply, ProbeResult::Silence) {
                return reply;
            }
        }
        ask(self)
    }

    fn new_request(&mut self, kind: RequestKind, class: u8, room: usize) -> ProbeRequest {
        self.number += 1;
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        ProbeRequest { session: self.session, number: self.number, kind, class, room }
    }

    fn request(&mut self, kind: RequestKind, length: usize, class: u8, room: usize) -> ProbeResult {
        let request = self.new_request(kind, class, room);
        let packet = filled(&request, length.max(MIN_LEN));
        let sent_at = clock::now();
        match self.socket.send(&packet, class, packet.len()) {
            Ok(()) => {}
            // The interface has no room, or the packet is too long for it: the packet counts as
            // lost.
            Err(Errno::ENOBUFS | Errno::EAGAIN) => {}
            Err(error) => return ProbeResult::Refused(error),
        }
        loop {
            match self.socket.receive(MsgFlags::empty()) {
                Ok(datagram) => {
                    let time = clock::now() - sent_at;
                    let class = datagram.class;
                    // Late responses to earlier requests may arrive too.
                    let observation = datagram
                        .bytes
                        .chunks(datagram.segment)
                        .find_map(|it| request.parse_response(it));
                    if let Some(observation) = observation {
                        return ProbeResult::Response(ProbeResponse { observation, class, time });
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ETIMEDOUT) => return ProbeResult::Silence,
                Err(error) => return ProbeResult::Refused(error),
            }
        }
    }
}

/// Returns a packet of `length` bytes that starts with the request.
fn filled(request: &ProbeRequest, length: usize) -> Vec<u8> {
    let mut head = [0; MIN_LEN];
    request.emit(&mut head);
    let mut packet = head.to_vec();
    packet.resize(length, 0);
    packet
}

#[cfg(test)]
mod tests {
    use super::super::Listener;
    use super::*;
    use apus_measure::process::Stop;
    use std::thread;

    #[test]
    fn a_listener_reports_properties_and_counts() {
        let listener = Listener::open("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address().unwrap();
        let stop = Stop::default();
        let responses = thread::scope(|scope| {
            let serving = scope.spawn(|| listener.serve(&stop));
            let mut client = ProbeClient::new(address).unwrap();
            let ProbeResult::Response(answer) = client.echo(1_000, 0x60, 900).unwrap() else {
                panic!("silence")
            };
            assert_eq!(
                (answer.observation.class, answer.observation.length, answer.class),
                (0x60, 1_000, 0x60)
            );
            assert!(answer.time > 0);
            let (packets, receives) = client.train(40, 1_400).unwrap().unwrap();
            assert_eq!((packets, receives), (40, 1), "on loopback a burst stays one");
            stop.ask();
            serving.join().unwrap().unwrap()
        });
        assert!(responses >= 2);
    }

    #[test]
    fn a_closed_port_is_an_error_and_not_silence() {
        let closed = ClassSocket::open("127.0.0.1:0".parse().unwrap()).unwrap().address().unwrap();
        let mut client = ProbeClient::new(closed).unwrap();
        assert_eq!(client.echo(100, 0, 100).unwrap(), ProbeResult::Refused(Errno::ECONNREFUSED));
    }
}
