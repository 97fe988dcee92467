//! Listener: answers doctors on other hosts.

use std::collections::VecDeque;
use std::net::SocketAddr;

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;

use super::packet::{Observation, ProbeRequest, RequestKind};
use super::socket::ClassSocket;
use apus_measure::error::{Doing, Error};
use apus_measure::process::Stop;
use apus_measure::process::wake_on_stop;

/// Default port of a listener: the port after the default port of `apus serve`.
pub const PORT: u16 = 4001;

/// Answers requests of `apus doctor` on other hosts: reports the arrived packets, in responses no
/// longer than the requests (PROBE-1).
#[derive(Debug)]
pub struct Listener {
    socket: ClassSocket,
    trains: TrainCounts,
    responses: u64,
}

impl Listener {
    /// Opens a listener; port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub fn open(address: SocketAddr) -> Result<Self, Error> {
        Ok(Self {
            socket: ClassSocket::open(address)?,
            trains: TrainCounts::default(),
            responses: 0,
        })
    }

    /// Returns the local address.
    ///
    /// # Errors
    ///
    /// The system does not report it.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.socket.address()
    }

    /// Answers requests until `stop` is set. Returns the number of answered requests.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub fn serve(mut self, stop: &Stop) -> Result<u64, Error> {
        wake_on_stop(self.socket.socket(), stop)?;
        while !stop.is_asked() {
            match self.handle_datagram(stop) {
                // ICMP errors about a client do not concern the listener.
                Ok(())
                | Err(Errno::EINTR | Errno::EAGAIN | Errno::ECONNREFUSED | Errno::EHOSTUNREACH) => {
                }
                Err(error) => return Err(error).doing(|| "receive requests".to_owned()),
            }
        }
        Ok(self.responses)
    }

    /// Receives a datagram and answers its requests.
    fn handle_datagram(&mut self, stop: &Stop) -> nix::Result<()> {
        let datagram = self.socket.receive(MsgFlags::empty())?;
        if stop.is_asked() {
            return Ok(());
        }
        let Some(from) = datagram.from else { return Ok(()) };
        let to = datagram.to;
        let class = datagram.class;
        let mut responses = Vec::new();
        let mut is_first = true;
        for packet in datagram.bytes.chunks(datagram.segment) {
            let Some(request) = ProbeRequest::parse(packet) else { continue };
            let mut observation =
                Observation { class, length: packet.len() as u32, ..Observation::default() };
            match request.kind {
                RequestKind::Echo => {}
                RequestKind::Count => {
                    self.trains.count(request.session, is_first);
                    is_first = false;
                    continue;
                }
                RequestKind::Tally => {
                    (observation.packets, observation.receives) = self.trains.of(request.session);
                }
            }
            responses.push((request.answer(&observation, packet.len()), request.class));
        }
        for (answer, class) in responses {
            // A response too long for the return path is not sent; the client infers this.
            if self.socket.answer(&answer, class, from, to).is_ok() {
                self.responses += 1;
            }
        }
        Ok(())
    }
}

/// Packet counts of recent sessions.
#[derive(Debug, Default)]
struct TrainCounts {
    /// Session, packets, receive calls; newest at the back.
    sessions: VecDeque<(u64, u32, u32)>,
}

/// Number of sessions counted at the same time. Chosen by us: enough for concurrent clients, and a
/// bound for memory.
const SESSIONS: usize = 64;

impl TrainCounts {
    fn count(&mut self, session: u64, is_first_of_receive: bool) {
        let place = self.sessions.iter().position(|(each, ..)| *each == session);
        let place = place.unwrap_or_else(|| {
            if self.sessions.len() == SESSIONS {
                self.sessions.pop_front();
            }
            self.sessions.push_back((session, 0, 0));
            self.sessions.len() - 1
        });
        let (_, packets, receives) = &mut self.sessions[place];
        *packets = packets.saturating_add(1);
        *receives = receives.saturating_add(u32::from(is_first_of_receive));
    }

    /// Returns the packets and receive calls of a session.
    fn of(&self, session: u64) -> (u32, u32) {
        let found = self.sessions.iter().find(|(each, ..)| *each == session);
        found.map_or((0, 0), |(_, packets, receives)| (*packets, *receives))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_by_session_and_the_oldest_session_is_dropped() {
        let mut trains = TrainCounts::default();
        (0..3).for_each(|packet| trains.count(1, packet == 0));
        trains.count(2, true);
        assert_eq!((trains.of(1), trains.of(2), trains.of(3)), ((3, 1), (1, 1), (0, 0)));
        (0..SESSIONS as u64).for_each(|session| trains.count(100 + session, true));
        assert_eq!((trains.of(1), trains.of(2), trains.of(100)), ((0, 0), (0, 0), (1, 1)));
    }
}
