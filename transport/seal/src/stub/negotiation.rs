//! Handshakes without protection: three messages with the random numbers of both ends.

use super::cipher::{StubKeys, mix};
use crate::failure::Failure;
use crate::identity::{Identity, IdentityKind};
use crate::negotiation::{KeyChange, Life, Negotiation, Negotiator};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Identity and trust of one end of stub handshakes.
#[derive(Clone, Copy, Debug)]
pub struct StubPolicy {
    /// Name of this end.
    pub name: u64,
    /// A number shared by all ends that trust each other, in place of a CA.
    pub trust: u64,
    /// Packets that a key may seal.
    pub limit: u64,
}

/// Creates stub handshakes. All random numbers follow from the seed.
#[derive(Debug)]
pub struct StubNegotiator {
    policy: StubPolicy,
    state: AtomicU64,
    revoked: Mutex<Vec<u64>>,
}

impl StubNegotiator {
    /// Creates a negotiator whose random numbers follow from `seed`.
    #[must_use]
    pub const fn new(policy: StubPolicy, seed: u64) -> Self {
        Self { policy, state: AtomicU64::new(mix(seed, 0xd1ce)), revoked: Mutex::new(Vec::new()) }
    }

    /// Revokes the end with this name.
    ///
    /// # Panics
    ///
    /// If a thread panicked here earlier.
    pub fn revoke(&self, name: u64) {
        self.revoked.lock().unwrap().push(name);
    }

    fn draw(&self) -> u64 {
        mix(self.state.fetch_add(1, Ordering::Relaxed), 0x5eed)
    }

    fn begin(&self, is_client: bool, life: Life) -> Box<dyn Negotiation> {
        let policy = self.policy;
        let step = if is_client { StubStep::Hello } else { StubStep::AwaitHello };
        Box::new(StubNegotiation {
            policy,
            is_client,
            ours: self.draw(),
            theirs: 0,
            peer: None,
            life: Some(life),
            step,
            input: Vec::new(),
        })
    }
}

impl Negotiator for StubNegotiator {
    fn connect(&self, _peer: SocketAddr, life: Life) -> Result<Box<dyn Negotiation>, Failure> {
        Ok(self.begin(true, life))
    }

    fn accept(&self, _peer: SocketAddr, life: Life) -> Result<Box<dyn Negotiation>, Failure> {
        Ok(self.begin(false, life))
    }

    fn fill_random(&self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.draw().to_le_bytes()[..chunk.len()]);
        }
    }

    fn mac(&self, key: &[u8; 32], message: &[u8]) -> [u8; 32] {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let state = key.chunks(8).chain(message.chunks(8)).fold(0, |s, part| mix(s, word(part)));
        let mut tag = [0; 32];
        for (n, part) in tag.chunks_mut(8).enumerate() {
            part.copy_from_slice(&mix(state, n as u64).to_le_bytes());
        }
        tag
    }

    fn recheck(&self, identity: &Identity, _peer: SocketAddr) -> Result<(), Failure> {
        let revoked = self.revoked.lock().map_err(|_| Failure::Internal)?;
        let is_revoked = revoked.iter().any(|name| identity.matches(&name.to_string()));
        if is_revoked { Err(Failure::Revoked) } else { Ok(()) }
    }
}

/// The next step of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StubStep {
    /// Client: say hello.
    Hello,
    /// Client: await the server's number, then, with the handshake keys, its proof.
    AwaitServer,
    AwaitProof,
    /// Client: send the proof.
    Prove,
    /// Server.
    AwaitHello,
    Answer,
    AnswerProof,
    AwaitClientProof,
    Ticket,
    Done,
}

/// Bytes of each message.
const MESSAGE: usize = 24;

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

#[derive(Debug)]
struct StubNegotiation {
    policy: StubPolicy,
    is_client: bool,
    ours: u64,
    theirs: u64,
    peer: Option<u64>,
    /// Of this end until it is stated, then of the other one.
    life: Option<Life>,
    step: StubStep,
    input: Vec<u8>,
}

impl StubNegotiation {
    /// The numbers of the client and of the server.
    const fn numbers(&self) -> (u64, u64) {
        if self.is_client { (self.ours, self.theirs) } else { (self.theirs, self.ours) }
    }

    const fn secret(&self) -> u64 {
        let (client, server) = self.numbers();
        mix(client, server)
    }

    fn message(&self, tag: u64) -> [u8; MESSAGE] {
        let mut message = [0; MESSAGE];
        message[..8].copy_from_slice(&self.ours.to_le_bytes());
        message[8..16].copy_from_slice(&self.policy.name.to_le_bytes());
        message[16..].copy_from_slice(&tag.to_le_bytes());
        message
    }

    fn take_message(&mut self) -> Option<[u64; 3]> {
        let message: [u8; MESSAGE] = *self.input.first_chunk()?;
        self.input.drain(..MESSAGE);
        let word = |n: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&message[8 * n..8 * n + 8]);
            u64::from_le_bytes(word)
        };
        Some([word(0), word(1), word(2)])
    }

    fn check_proof(&mut self, [number, name, tag]: [u64; 3]) -> Result<(), Failure> {
        if number != self.theirs {
            return Err(Failure::Protocol);
        }
        if tag != mix(mix(self.secret(), self.policy.trust), name) {
            return Err(Failure::UnknownCa);
        }
        self.peer = Some(name);
        Ok(())
    }

    /// The server's first message: its random number and its life.
    fn stated(&self) -> [u8; MESSAGE] {
        let mut message = self.message(0);
        if let Some(life) = self.life {
            message[8..16].copy_from_slice(&life.id.to_le_bytes());
            let age = u64::try_from(life.age.as_micros()).unwrap_or(u64::MAX);
            message[16..].copy_from_slice(&age.to_le_bytes());
        }
        message
    }

    fn proof(&self) -> [u8; MESSAGE] {
        self.message(mix(mix(self.secret(), self.policy.trust), self.policy.name))
    }

    fn handshake_keys(&self) -> KeyChange {
        KeyChange::Handshake(StubKeys::new(mix(self.secret(), 7), self.is_client, u64::MAX).pair())
    }

    fn application_keys(&self) -> KeyChange {
        let (client, server) = self.numbers();
        let keys = StubKeys::of_handshake(client, server, self.is_client, self.policy.limit);
        KeyChange::Application(keys.pair(), Box::new(keys))
    }
}

impl Negotiation for StubNegotiation {
    fn read(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.input.extend_from_slice(bytes);
        while self.input.len() >= MESSAGE {
            let Some(message) = self.take_message() else { break };
            self.step = match self.step {
                StubStep::AwaitServer | StubStep::AwaitHello => {
                    self.theirs = message[0];
                    if self.is_client {
                        self.life = Some(Life { id: message[1], age: micros(message[2]) });
                        StubStep::AwaitProof
                    } else {
                        StubStep::Answer
                    }
                }
                StubStep::AwaitProof => {
                    self.check_proof(message)?;
                    StubStep::Prove
                }
                StubStep::AwaitClientProof => {
                    self.check_proof(message)?;
                    StubStep::Ticket
                }
                StubStep::Done => StubStep::Done,
                _ => return Err(Failure::Protocol),
            };
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        match self.step {
            StubStep::Hello => {
                out.extend(self.message(0));
                self.step = StubStep::AwaitServer;
                None
            }
            StubStep::AwaitProof if self.peer.is_none() && self.input.is_empty() => {
                // Set once; repeating the key change would be harmless.
                self.peer = Some(u64::MAX);
                Some(self.handshake_keys())
            }
            StubStep::Prove => {
                out.extend(self.proof());
                self.step = StubStep::Done;
                Some(self.application_keys())
            }
            StubStep::Answer => {
                out.extend(self.stated());
                self.step = StubStep::AnswerProof;
                Some(self.handshake_keys())
            }
            StubStep::AnswerProof => {
                out.extend(self.proof());
                self.step = StubStep::AwaitClientProof;
                Some(self.application_keys())
            }
            StubStep::Ticket => {
                out.extend(self.message(1));
                self.step = StubStep::Done;
                None
            }
            _ => None,
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self.step, StubStep::Done | StubStep::Ticket)
    }

    fn is_resumed(&self) -> bool {
        false
    }

    fn session(&self) -> Result<u64, Failure> {
        let (client, server) = self.numbers();
        Ok(StubKeys::session_of_handshake(client, server))
    }

    fn peer_life(&self) -> Option<Life> {
        // Only the server states its life here.
        self.life.filter(|_| self.is_client)
    }

    fn identity(&self) -> Result<Identity, Failure> {
        let name = self.peer.ok_or(Failure::NoCertificate)?;
        Ok(Identity::new(IdentityKind::Secret, vec![name.to_string()], [0; 32], Vec::new()))
    }
}
