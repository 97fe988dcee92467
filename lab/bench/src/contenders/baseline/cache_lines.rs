//! A bare exchange of cache lines between two processes: the lower bound for messages within a
//! host.
//!
//! Each direction is a slot in memory that both sides map. A message is a word with its number
//! followed by the payload, on the minimum number of cache lines. The sender writes the number
//! last, and the receiver spins on it. The exchange is minimal: one request at a time, no length,
//! no peer, no checks. Sides configured to sleep yield their cores instead. Any time beyond this is
//! the transport's cost.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use apus::PollMode;
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::stream::server::accept;
use super::unix::UnixKind;
use super::unix::socket::{listen, open};
use crate::contenders::contender::Contender;
use crate::contenders::shared_words::SharedWords;
use apus_measure::ping_pong::ping_pong;
use apus_measure::plan::{Plan, Side};
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Stop};

/// A bare exchange of cache lines, one message at a time.
#[derive(Clone, Copy, Debug)]
pub struct CacheLines;

/// Maximum payload in bytes. Chosen by us: longer messages are limited by copying, not by the
/// exchange.
const LONGEST: usize = 4096;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Read attempts between two checks of the stop request.
const ATTEMPTS: u32 = 256;

impl Contender for CacheLines {
    fn name(&self) -> &'static str {
        "bare"
    }

    fn settings(&self) -> String {
        "cache lines in memory of both processes, which spin: payload, and its number, written last; the rate is that of a pair of \
         rings without an endpoint"
            .to_owned()
    }

    fn exclusion(&self, plan: &Plan) -> Option<String> {
        let size = plan.size;
        (size > LONGEST).then(|| format!("{size} bytes are more than the {LONGEST} of a slot"))
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let layout = Layout::of(plan);
        let memory = SharedWords::create("apus-bare", layout.len())
            .doing(|| "create shared memory".to_owned())?;
        let socket = listen(UnixKind::Stream)?;
        control.ready(socket.address)?;
        let waiting = Waiting::new(plan.poll, control.stop());
        let Some(client) = accept(&socket.listener, control.stop())? else {
            return Ok(Side::default());
        };
        give(&client, memory.as_fd())?;
        let (requests, replies) = layout.slots(&memory);
        let mut payload = layout.payload();
        for number in 0.. {
            if !requests.wait(number, &mut payload, &waiting) {
                break;
            }
            replies.put(number, &payload);
        }
        Ok(Side::default())
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let layout = Layout::of(plan);
        let memory = take(&open(server, UnixKind::Stream)?)
            .and_then(|file| SharedWords::adopt(file, layout.len()))
            .doing(|| format!("share memory with {server}"))?;
        let (requests, replies) = layout.slots(&memory);
        let waiting = Waiting::new(plan.poll, control.stop());
        let (request, mut reply) = (layout.payload(), layout.payload());
        ping_pong(plan, |number| {
            requests.put(number, &request);
            Ok(replies.wait(number, &mut reply, &waiting))
        })
    }
}

/// Where messages are in the memory.
#[derive(Clone, Copy)]
struct Layout {
    /// Words of a payload.
    words: usize,
    /// Bytes of a slot: whole cache lines.
    slot: usize,
}

impl Layout {
    fn of(plan: &Plan) -> Self {
        let words = plan.size.div_ceil(WORD);
        Self { words, slot: ((1 + words) * WORD).next_multiple_of(LINE) }
    }

    const fn len(self) -> usize {
        2 * self.slot
    }

    fn payload(self) -> Vec<u64> {
        vec![0; self.words]
    }

    /// Returns the slots of requests and of replies.
    fn slots(self, memory: &SharedWords) -> (Slot<'_>, Slot<'_>) {
        let at = |offset| Slot(memory.words(offset, 1 + self.words));
        (at(0), at(self.slot))
    }
}

/// A message: its number plus one, and the payload.
#[derive(Clone, Copy)]
struct Slot<'a>(&'a [AtomicU64]);

impl Slot<'_> {
    /// Writes message `number`.
    #[inline]
    fn put(self, number: u64, payload: &[u64]) {
        for (word, value) in self.0[1..].iter().zip(payload) {
            word.store(*value, Relaxed);
        }
        self.0[0].store(number + 1, Release);
    }

    /// Reads message `number` once it has been written; `false` if this side must stop.
    #[inline]
    fn wait(self, number: u64, payload: &mut [u64], waiting: &Waiting<'_>) -> bool {
        let written = || self.0[0].load(Acquire) == number + 1;
        while !(0..ATTEMPTS).any(|_| written()) {
            if !waiting.goes_on() {
                return false;
            }
        }
        for (word, value) in self.0[1..].iter().zip(payload) {
            *value = word.load(Relaxed);
        }
        true
    }
}

/// Behaviour of a side between two series of read attempts.
struct Waiting<'a> {
    /// Whether it yields its core to the other side, because they may share it.
    yields: bool,
    stop: &'a Stop,
}

impl<'a> Waiting<'a> {
    fn new(poll: PollMode, stop: &'a Stop) -> Self {
        Self { yields: poll != PollMode::Spin, stop }
    }

    /// Returns `false` if the side must stop.
    fn goes_on(&self) -> bool {
        if self.yields {
            std::thread::yield_now();
        }
        !self.stop.is_asked()
    }
}

/// Passes the memory to the client.
fn give(client: &OwnedFd, memory: BorrowedFd<'_>) -> Result<(), Error> {
    let memory = [memory];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&memory));
    sendmsg(client, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())
        .doing(|| "pass shared memory to the client".to_owned())?;
    Ok(())
}

/// Receives the memory that the server passes.
fn take(server: &OwnedFd) -> std::io::Result<OwnedFd> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(server, &mut [IoSliceMut::new(&mut [0])], &mut control, flags)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let missing = || std::io::Error::new(std::io::ErrorKind::InvalidData, "no memory was passed");
    files.flatten().next().ok_or_else(missing)
}
