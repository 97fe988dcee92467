//! What does the thread with the turn receive from?
//!
//! From the driver, and from the memory that is shared with peers of this host. A look at the network costs a
//! system call, one at memory ten nanoseconds or so: while messages come through memory, the network is looked at
//! seldom enough to be no burden, and often enough that nobody there waits.
//!
//! # Invariants
//!
//! - **I1** What is known to be in the socket is taken with the next look, however busy the memory is: when the driver
//!   has woken a sleeper, and when a receive has left something there. A thread would go to sleep again and be woken
//!   at once, over and over; a task, whose runtime tells it once, would leave the packets where they are.
//! - **I2** Who looks on purpose, which is seldom, looks at both.

use super::path::Path;
use crate::engine::signal::{Signal, Wanted, Woken};
use apus_driver::ReceiveHalf;
use apus_local::{
    Disconnected, Local, Pair, PairEvent, PollEvent, PollOutcome, PollSet, ReceiveQuota,
};
use apus_proto::{Execution, FailureKind, RpcError};
use bytes::Bytes;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where messages come from. Locked by the thread that has the turn, and by nobody else.
pub(crate) struct Receiver {
    /// The driver's receiving half.
    pub(in crate::engine) network: Box<dyn ReceiveHalf>,
    local: Option<LocalReceiver>,
}

/// The part in memory.
struct LocalReceiver {
    local: Arc<Local>,
    poll_set: PollSet,
    /// What came with the last look.
    taken: Vec<LocalEvent>,
    balance: Balance,
    /// Whether so much waits for the application that nothing more is taken.
    full: bool,
    /// Since when one spins for the rest of a message.
    lingers_since: Option<Instant>,
    /// The system refused something: its descriptor is left alone until then.
    muted_until: Option<Instant>,
    /// Whether the driver and the signal stand beside the pairs' sockets; `None`: nobody has wanted it yet.
    has_companions: Option<bool>,
}

/// What stands beside the pairs' sockets.
const DRIVER: u32 = 0;
const SIGNAL: u32 = 1;

const MILLISECOND: u64 = 1_000_000;

/// What came through memory.
#[derive(Debug)]
pub(super) enum LocalEvent {
    /// A request of a client.
    Request { pair: Arc<Pair>, id: u64, payload: Bytes },
    /// The client does not want the answer any more.
    Cancelled { pair: u64, id: u64 },
    /// The end of a call, as the server says.
    Ended { pair: u64, id: u64, result: Result<Bytes, RpcError> },
    /// The peer asks for the trace to be frozen.
    Freeze { pair: Arc<Pair> },
    /// There is room to send again.
    Room,
    /// A pair has ended.
    Gone { pair: Arc<Pair>, why: Disconnected },
}

/// How long one spins for the rest of a long message. Ours: a chunk of 32 KiB is copied in 3 µs, a wake-up takes 20 and more.
const LINGER: Duration = Duration::from_micros(20);

/// How long the system's descriptors are left alone after it refused something. Ours: what it lacked may be there again.
const MUTED: Duration = Duration::from_millis(100);

impl Receiver {
    pub(crate) fn new(network: Box<dyn ReceiveHalf>, path: Option<&Path>) -> Self {
        let local = path.map(|path| LocalReceiver {
            has_companions: None,
            local: path.local.clone(),
            poll_set: PollSet::default(),
            taken: Vec::new(),
            balance: Balance::default(),
            full: false,
            lingers_since: None,
            muted_until: None,
        });
        Self { network, local }
    }

    /// Whether the network is to be looked at in this pass.
    pub(in crate::engine) fn is_network_due(&mut self) -> bool {
        let Some(near) = &mut self.local else { return true };
        let due = near.balance.is_network_due();
        if due && near.balance.are_sockets_due() {
            near.poll_sockets();
        }
        due
    }

    /// Takes up to `quota` packets, or a few more, from the network; how many.
    pub(in crate::engine) fn receive_network(&mut self, quota: usize) -> io::Result<usize> {
        let packets = self.network.receive(quota)?;
        if packets > 0 && self.network.may_have_more() {
            self.expect_network();
        }
        Ok(packets)
    }

    /// Something is in the socket, or may well be: the next look at the network is due (I1, I2).
    pub(in crate::engine) fn expect_network(&mut self) {
        if let Some(near) = &mut self.local {
            near.balance.expect_network();
        }
    }

    /// Takes what is in memory; how many messages, and words about messages, are to be handled.
    pub(in crate::engine) fn receive_local(&mut self) -> usize {
        self.local.as_mut().map_or(0, LocalReceiver::receive)
    }

    /// What was taken, to be handled.
    pub(super) fn taken(&mut self) -> Option<&mut Vec<LocalEvent>> {
        self.local.as_mut().map(|near| &mut near.taken)
    }

    /// So much waits for the application that nothing more is taken from memory, or not any more.
    pub(in crate::engine) fn set_full(&mut self, full: bool) {
        if let Some(near) = &mut self.local {
            near.full = full;
        }
    }

    /// Whether to spin a little in place of sleeping: a long message has come or left in part, and whoever copies the
    /// rest of it is busy with that. Each chunk would cost a wake-up on both sides.
    pub(in crate::engine) fn lingers(&mut self) -> bool {
        let Some(near) = &mut self.local else { return false };
        if near.full || !near.poll_set.has_partial_message() {
            near.lingers_since = None;
            return false;
        }
        let now = Instant::now();
        std::hint::spin_loop();
        now.duration_since(*near.lingers_since.get_or_insert(now)) < LINGER
    }

    /// Announces to local peers that this side is going to sleep. `false`: it must not, something has come. Must be
    /// followed by [`Receiver::awake`].
    pub(in crate::engine) fn prepare_to_sleep(&mut self) -> bool {
        let Some(near) = &mut self.local else { return true };
        let prepared = near.full || near.local.prepare_to_sleep(&mut near.poll_set);
        if !prepared {
            near.local.finish_sleep(&near.poll_set);
        }
        prepared
    }

    /// This side does not sleep any more.
    pub(in crate::engine) fn awake(&mut self, woken: Woken) {
        if woken.driver {
            self.expect_network();
        }
        let Some(near) = &mut self.local else { return };
        near.local.finish_sleep(&near.poll_set);
        if woken.doorbell {
            near.poll_sockets();
        }
    }

    /// Sleeps on the driver, the signal and all pairs in one call, which costs less than the usual way if a pair rings.
    /// `None`: the usual way, since there is no pair, or more is wanted than this can do (whole milliseconds, and
    /// nothing but reading).
    pub(in crate::engine) fn sleep_beside_pairs(
        &mut self,
        signal: &Signal,
        wanted: Wanted,
        nanos: Option<u64>,
    ) -> Option<Woken> {
        let Self { network, local } = self;
        let near = local.as_mut().filter(|near| near.poll_set.has_pairs())?;
        let possible = wanted.readable && !wanted.writable;
        if !possible || nanos.is_some_and(|nanos| nanos < MILLISECOND) {
            return None;
        }
        // A task sleeps in its runtime, which would hear of the companions twice: they come in with the first thread.
        let watch = || {
            near.local.watch(&**network, DRIVER).is_ok() && near.local.watch(signal, SIGNAL).is_ok()
        };
        if !*near.has_companions.get_or_insert_with(watch) {
            return None;
        }
        // Rounded down: whoever wakes up too early sleeps again.
        let time = nanos.map(|nanos| Duration::from_millis(nanos / MILLISECOND));
        let outcome = near.poll_sockets_for(time)?;
        let has = |number: u32| outcome.companions >> number & 1 == 1;
        Some(Woken { driver: has(DRIVER), doorbell: false, signal: has(SIGNAL) })
    }

    /// On what one sleeps: the driver, and what becomes readable when a local peer rings or somebody new comes.
    pub(in crate::engine) fn descriptors(&mut self) -> (BorrowedFd<'_>, Option<BorrowedFd<'_>>) {
        let doorbell = self.local.as_mut().and_then(|near| {
            near.muted_until = near.muted_until.filter(|until| Instant::now() < *until);
            near.muted_until.is_none().then(|| near.local.as_fd())
        });
        (self.network.as_fd(), doorbell)
    }
}

impl LocalReceiver {
    fn receive(&mut self) -> usize {
        if self.full {
            return 0;
        }
        let Self { local, poll_set, taken, balance, .. } = self;
        let records = local.receive(poll_set, ReceiveQuota::default(), |pair, arrival| {
            taken.push(LocalEvent::new(pair, arrival));
        });
        balance.note_records(records);
        if records > 0 {
            self.lingers_since = None;
        }
        self.taken.len()
    }

    /// Lets clients in, takes answers to connects, and sees who has died.
    fn poll_sockets(&mut self) {
        self.poll_sockets_for(Some(Duration::ZERO));
    }

    /// The same, and waits for that. `None`: the system has refused something.
    fn poll_sockets_for(&mut self, time: Option<Duration>) -> Option<PollOutcome> {
        if self.muted_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let outcome = self.local.poll_sockets(&mut self.poll_set, time).ok();
        self.muted_until = match outcome {
            Some(_) => None,
            None => Instant::now().checked_add(MUTED),
        };
        outcome
    }
}

impl LocalEvent {
    fn new(pair: &Arc<Pair>, arrival: PollEvent) -> Self {
        let number = pair.number();
        let failed = |reason, outcome| Err(RpcError { kind: reason, execution: outcome });
        let event = match arrival {
            PollEvent::Disconnected(why) => return Self::Gone { pair: pair.clone(), why },
            PollEvent::Event(event) => event,
        };
        match event {
            PairEvent::Request { id, payload } => Self::Request { pair: pair.clone(), id, payload },
            PairEvent::Cancelled { id } => Self::Cancelled { pair: number, id },
            PairEvent::Response { id, payload } => {
                Self::Ended { pair: number, id, result: Ok(payload) }
            }
            PairEvent::Refused { id, why } => {
                let before = why.is_before_execution();
                let outcome = if before { Execution::NotExecuted } else { Execution::Unknown };
                Self::Ended { pair: number, id, result: failed(FailureKind::Refused(why), outcome) }
            }
            PairEvent::Declined { id, length } => {
                let reason = FailureKind::ResponseTooLarge { length };
                Self::Ended { pair: number, id, result: failed(reason, Execution::Executed) }
            }
            PairEvent::Freeze => Self::Freeze { pair: pair.clone() },
            // Room, and an event that a later crate may know: whoever waits tries again.
            _ => Self::Room,
        }
    }
}

/// When the network is looked at beside memory. Counts in looks at memory that find nothing.
#[derive(Debug, Default)]
struct Balance {
    /// Since the network was looked at.
    spent: u32,
    /// For how long nothing must come through memory until it is looked at as often as the network.
    warm: u32,
    /// Looks at the network since the sockets of local peers were looked at.
    looks: u32,
}

impl Balance {
    /// What may be spent between two looks at the network. Ours: about 10 µs, so that these take 3 % of the time, and
    /// whoever sends over the network waits for less than twice as long as on an idle host.
    const LIMIT: u32 = 1024;
    /// What a record costs: a third of a microsecond, where an empty look takes 10 ns.
    const RECORD: u32 = 32;
    /// Looks at the network for one at the sockets of local peers, which tell of those who come and those who were
    /// killed: a hundredth of their cost.
    const LOOKS: u32 = 64;

    const fn is_network_due(&mut self) -> bool {
        let due = self.warm == 0 || self.spent >= Self::LIMIT;
        if due {
            self.spent = 0;
        }
        due
    }

    const fn expect_network(&mut self) {
        self.spent = Self::LIMIT;
    }

    const fn are_sockets_due(&mut self) -> bool {
        self.looks = (self.looks + 1) % Self::LOOKS;
        self.looks == 0
    }

    fn note_records(&mut self, records: usize) {
        let records = u32::try_from(records).unwrap_or(u32::MAX);
        self.spent = self.spent.saturating_add(records.saturating_mul(Self::RECORD).max(1));
        self.warm = if records > 0 { Self::LIMIT } else { self.warm.saturating_sub(1) };
    }
}

#[cfg(all(test, not(apus_loom)))]
mod tests {
    use super::*;
    use crate::EndpointBuilder;
    use std::net::UdpSocket;

    /// Looks at memory between two looks at the network, if each finds so many records.
    fn between(balance: &mut Balance, records: usize) -> u32 {
        for looks in 0.. {
            if balance.is_network_due() {
                return looks;
            }
            balance.note_records(records);
        }
        unreachable!("it comes")
    }

    #[test]
    fn the_network_is_looked_at_each_time_unless_something_comes_through_memory() {
        let mut balance = Balance::default();
        balance.note_records(0);
        assert_eq!(between(&mut balance, 0), 0);
        balance.note_records(1);
        assert_eq!(between(&mut balance, 1), 31);
        assert_eq!(between(&mut balance, 64), 1, "a full ring does not keep the network away");
        let quiet = between(&mut balance, 0);
        assert!((900..=1024).contains(&quiet), "{quiet}");
        assert_eq!(between(&mut balance, 0), 0, "nothing came for as long");
    }

    #[test]
    fn a_network_that_is_expected_is_looked_at_next() {
        let mut balance = Balance::default();
        balance.note_records(1);
        balance.expect_network();
        assert_eq!(between(&mut balance, 1), 0, "I1");
        assert_eq!(between(&mut balance, 1), 32, "once");
    }

    /// I2: a server under pressure looks on purpose, which must not leave out the network because of what came through memory.
    #[test]
    fn a_look_on_purpose_takes_what_the_network_has() {
        let server = EndpointBuilder::default().bind("127.0.0.1:0").unwrap();
        let shard = server.shard();
        // With the turn nobody else takes the packet, nor changes what is due.
        while !shard.lock().role.take() {
            std::thread::yield_now();
        }
        shard.receive.lock().unwrap().local.as_mut().unwrap().balance.note_records(1);
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.send_to(b"what it is does not matter", server.local_addr()).unwrap();
        let before = shard.metrics().engine.packets_arrived;
        drop(shard.poll_once());
        assert_eq!(shard.metrics().engine.packets_arrived, before + 1);
    }

    #[test]
    fn sockets_are_looked_at_now_and_then() {
        let mut balance = Balance::default();
        let outcome = (0..640).filter(|_| balance.are_sockets_due()).count();
        assert_eq!(outcome, 10);
    }
}
