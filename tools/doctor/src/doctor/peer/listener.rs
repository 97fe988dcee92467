//! What does a doctor answer who is asked from elsewhere?

use std::collections::VecDeque;
use std::net::SocketAddr;

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;

use super::packet::{Kind, Question, Seen};
use super::socket::ClassSocket;
use apus_contenders::baseline::waiter::wake_on_stop;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// Answers `apus doctor` on other hosts: what it saw of their packets, and nothing longer than they were.
#[derive(Debug)]
pub struct Listener {
    socket: ClassSocket,
    trains: Trains,
    answered: u64,
}

impl Listener {
    /// Opens it; port 0 takes any free one.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub fn open(address: SocketAddr) -> Result<Self, Error> {
        Ok(Self { socket: ClassSocket::open(address)?, trains: Trains::default(), answered: 0 })
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.socket.address()
    }

    /// Answers until it is told to stop; returns the number of questions that were answered.
    ///
    /// # Errors
    ///
    /// The socket is broken.
    pub fn serve(mut self, stop: &Stop) -> Result<u64, Error> {
        wake_on_stop(self.socket.socket(), stop)?;
        while !stop.is_asked() {
            match self.turn(stop) {
                // What ICMP says about somebody who asked is not our trouble.
                Ok(())
                | Err(Errno::EINTR | Errno::EAGAIN | Errno::ECONNREFUSED | Errno::EHOSTUNREACH) => {
                }
                Err(error) => return Err(error).doing(|| "receive questions".to_owned()),
            }
        }
        Ok(self.answered)
    }

    /// Takes a datagram and answers what is in it.
    fn turn(&mut self, stop: &Stop) -> nix::Result<()> {
        let datagram = self.socket.receive(MsgFlags::empty())?;
        if stop.is_asked() {
            return Ok(());
        }
        let Some(from) = datagram.from else { return Ok(()) };
        let to = datagram.to;
        let class = datagram.class;
        let mut answers = Vec::new();
        let mut is_first = true;
        for packet in datagram.bytes.chunks(datagram.segment) {
            let Some(question) = Question::parse(packet) else { continue };
            let mut seen = Seen { class, length: packet.len() as u32, ..Seen::default() };
            match question.kind {
                Kind::Echo => {}
                Kind::Count => {
                    self.trains.count(question.session, is_first);
                    is_first = false;
                    continue;
                }
                Kind::Tally => (seen.packets, seen.receives) = self.trains.of(question.session),
            }
            answers.push((question.answer(&seen, packet.len()), question.class));
        }
        for (answer, class) in answers {
            // Who asked for more than the way back carries gets nothing, and concludes that.
            if self.socket.answer(&answer, class, from, to).is_ok() {
                self.answered += 1;
            }
        }
        Ok(())
    }
}

/// Counts of the sessions that counted last.
#[derive(Debug, Default)]
struct Trains {
    /// Session, packets, receives; the newest at the back.
    sessions: VecDeque<(u64, u32, u32)>,
}

/// Sessions that are counted at the same time. Ours: as many hosts as ask at once, and no more memory than that.
const SESSIONS: usize = 64;

impl Trains {
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

    /// Packets and receives of a session.
    fn of(&self, session: u64) -> (u32, u32) {
        let found = self.sessions.iter().find(|(each, ..)| *each == session);
        found.map_or((0, 0), |(_, packets, receives)| (*packets, *receives))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_are_counted_by_session_and_the_oldest_are_forgotten() {
        let mut trains = Trains::default();
        (0..3).for_each(|packet| trains.count(1, packet == 0));
        trains.count(2, true);
        assert_eq!((trains.of(1), trains.of(2), trains.of(3)), ((3, 1), (1, 1), (0, 0)));
        (0..SESSIONS as u64).for_each(|session| trains.count(100 + session, true));
        assert_eq!((trains.of(1), trains.of(2), trains.of(100)), ((0, 0), (0, 0), (1, 1)));
    }
}
