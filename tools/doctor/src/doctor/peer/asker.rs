//! How is a doctor elsewhere asked?

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;

use super::packet::{Kind, Question, SHORTEST, Seen};
use super::socket::ClassSocket;
use apus_testbed::clock;
use apus_testbed::error::Error;

/// How long an answer may take. Ours: ten times what a datacenter and a sleeping thread need.
const PATIENCE: Duration = Duration::from_millis(150);

/// How often a question is repeated before silence means something. Ours: one packet in ten may be lost, and a
/// question is given up wrongly once in a hundred thousand times.
const TRIES: usize = 5;

/// What becomes of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It was answered.
    Answer(Answer),
    /// Nothing came.
    Silence,
    /// The system, or a host on the way, said why not.
    Refused(Errno),
}

/// An answer, and what can be seen of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) seen: Seen,
    /// Traffic class that the answer came with.
    pub(super) class: u8,
    /// From the question to the answer, in nanoseconds.
    pub(super) time: u64,
}

/// One who asks a listener.
#[derive(Debug)]
pub(super) struct Asker {
    socket: ClassSocket,
    session: u64,
    number: u32,
}

impl Asker {
    pub(super) fn new(peer: SocketAddr) -> Result<Self, Error> {
        let socket = ClassSocket::towards(peer)?;
        // Anybody's answers but those to this session are not ours.
        Ok(Self { socket, session: RandomState::new().hash_one(peer), number: 0 })
    }

    /// Longest IP packet that the system knows the path to carry.
    pub(super) fn path_mtu(&self) -> Option<usize> {
        self.socket.path_mtu()
    }

    /// Asks what is seen of a packet of `length` bytes and that class, by an answer of `room` bytes and the same
    /// class; again if nothing comes.
    pub(super) fn echo(&mut self, length: usize, class: u8, room: usize) -> Result<Reply, Error> {
        self.socket.patience(PATIENCE)?;
        Ok(self.persist(|asker| asker.ask(Kind::Echo, length, class, room)))
    }

    /// The same once.
    pub(super) fn echo_once(&mut self) -> Result<Reply, Error> {
        self.socket.patience(PATIENCE)?;
        Ok(self.ask(Kind::Echo, SHORTEST, 0, SHORTEST))
    }

    /// Sends so many packets of `length` bytes at once, and asks how many came, and with how many receives. `None`
    /// if nobody says.
    pub(super) fn train(
        &mut self,
        packets: usize,
        length: usize,
    ) -> Result<Option<(u32, u32)>, Error> {
        /// A burst waits for itself on slow links.
        const LONG: Duration = Duration::from_millis(500);
        self.session = self.session.wrapping_add(1);
        let question = self.question(Kind::Count, 0, SHORTEST);
        let one = filled(&question, length.max(SHORTEST));
        let all = one.repeat(packets);
        if self.socket.send(&all, 0, one.len()).is_err() {
            // Without segmentation offload, or without room for so much at once.
            for packet in all.chunks(one.len()) {
                // What cannot be sent is lost, too.
                let _ = self.socket.send(packet, 0, packet.len());
            }
        }
        self.socket.patience(LONG)?;
        let tally = self.persist(|asker| asker.ask(Kind::Tally, SHORTEST, 0, SHORTEST));
        Ok(match tally {
            Reply::Answer(answer) => Some((answer.seen.packets, answer.seen.receives)),
            Reply::Silence | Reply::Refused(_) => None,
        })
    }

    fn persist(&mut self, ask: impl Fn(&mut Self) -> Reply) -> Reply {
        for _ in 1..TRIES {
            let reply = ask(self);
            if !matches!(reply, Reply::Silence) {
                return reply;
            }
        }
        ask(self)
    }

    fn question(&mut self, kind: Kind, class: u8, room: usize) -> Question {
        self.number += 1;
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        Question { session: self.session, number: self.number, kind, class, room }
    }

    fn ask(&mut self, kind: Kind, length: usize, class: u8, room: usize) -> Reply {
        let question = self.question(kind, class, room);
        let packet = filled(&question, length.max(SHORTEST));
        let asked = clock::now();
        match self.socket.send(&packet, class, packet.len()) {
            Ok(()) => {}
            // The interface has no room, or drops what is too long for it: lost like any other.
            Err(Errno::ENOBUFS | Errno::EAGAIN) => {}
            Err(error) => return Reply::Refused(error),
        }
        loop {
            match self.socket.receive(MsgFlags::empty()) {
                Ok(datagram) => {
                    let time = clock::now() - asked;
                    let class = datagram.class;
                    // Late answers to earlier questions may be among them.
                    let seen = datagram
                        .bytes
                        .chunks(datagram.segment)
                        .find_map(|it| question.answered(it));
                    if let Some(seen) = seen {
                        return Reply::Answer(Answer { seen, class, time });
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ETIMEDOUT) => return Reply::Silence,
                Err(error) => return Reply::Refused(error),
            }
        }
    }
}

/// A packet of that length which begins with the question.
fn filled(question: &Question, length: usize) -> Vec<u8> {
    let mut head = [0; SHORTEST];
    question.emit(&mut head);
    let mut packet = head.to_vec();
    packet.resize(length, 0);
    packet
}

#[cfg(test)]
mod tests {
    use super::super::Listener;
    use super::*;
    use apus_testbed::process::Stop;
    use std::thread;

    #[test]
    fn a_listener_says_what_it_sees_and_counts() {
        let listener = Listener::open("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address().unwrap();
        let stop = Stop::default();
        let answered = thread::scope(|scope| {
            let serving = scope.spawn(|| listener.serve(&stop));
            let mut asker = Asker::new(address).unwrap();
            let Reply::Answer(answer) = asker.echo(1_000, 0x60, 900).unwrap() else {
                panic!("silence")
            };
            assert_eq!((answer.seen.class, answer.seen.length, answer.class), (0x60, 1_000, 0x60));
            assert!(answer.time > 0);
            let (packets, receives) = asker.train(40, 1_400).unwrap().unwrap();
            assert_eq!((packets, receives), (40, 1), "on loopback a burst stays one");
            stop.ask();
            serving.join().unwrap().unwrap()
        });
        assert!(answered >= 2);
    }

    #[test]
    fn a_closed_port_is_no_silence() {
        let closed = ClassSocket::open("127.0.0.1:0".parse().unwrap()).unwrap().address().unwrap();
        let mut asker = Asker::new(closed).unwrap();
        assert_eq!(asker.echo(100, 0, 100).unwrap(), Reply::Refused(Errno::ECONNREFUSED));
    }
}
