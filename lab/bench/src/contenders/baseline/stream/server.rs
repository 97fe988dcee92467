//! Server on a stream: echo and short replies.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SendFlags, recv, send};

use super::frames::{Frames, Inbox, frame};
use super::send_mode::SendMode;
use crate::contenders::baseline::waiter::Waiter;
use apus_measure::meter::Meter;
use apus_measure::plan::{Plan, Replies, Side};
use apus_measure::process::wake_on_stop;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// Accepts the next connection; `None` once the server must stop.
pub fn accept(listener: &impl AsFd, stop: &Stop) -> Result<Option<OwnedFd>, Error> {
    wake_on_stop(listener, stop)?;
    loop {
        return match rustix::net::accept(listener) {
            _ if stop.is_asked() => Ok(None),
            Err(Errno::INTR) => continue,
            accepted => accepted.map(Some).doing(|| "accept a connection".to_owned()),
        };
    }
}

/// Answers the messages on a connection until the client closes it.
pub(crate) fn serve(
    stream: &OwnedFd,
    inbox: Inbox,
    sends: SendMode,
    replies: Replies,
    plan: &Plan,
    stop: &Stop,
) -> Result<Side, Error> {
    match replies {
        Replies::Echo => echo(stream, inbox, sends, plan, stop),
        Replies::Short => absorb(stream, inbox, plan, stop),
    }
}

/// Sends each message back.
fn echo(
    stream: &OwnedFd,
    inbox: Inbox,
    sends: SendMode,
    plan: &Plan,
    stop: &Stop,
) -> Result<Side, Error> {
    receive(stream, inbox, plan, stop, |frames| match sends {
        SendMode::Ready => send_all(stream, frames.bytes),
        SendMode::One => frames.iter().try_for_each(|frame| send_all(stream, frame)),
    })?;
    Ok(Side::default())
}

/// Answers each message with a short reply, and counts.
fn absorb(stream: &OwnedFd, inbox: Inbox, plan: &Plan, stop: &Stop) -> Result<Side, Error> {
    let reply = frame(&Replies::SHORT);
    let mut meter = None;
    receive(stream, inbox, plan, stop, |frames| {
        if frames.count == 0 {
            return Ok(());
        }
        let meter = meter.get_or_insert_with(|| Meter::start(plan));
        meter.count(clock::now(), frames.count as u64, frames.payload() as u64);
        (0..frames.count).try_for_each(|_| send_all(stream, &reply))
    })?;
    Ok(meter.map_or_else(Side::default, Meter::finish))
}

/// Receives messages until the client closes the connection, and passes them to `answer`.
fn receive(
    stream: &OwnedFd,
    mut inbox: Inbox,
    plan: &Plan,
    stop: &Stop,
    mut answer: impl FnMut(Frames<'_>) -> Result<(), Errno>,
) -> Result<(), Error> {
    let waiter = Waiter::new(plan.poll, stop);
    loop {
        match waiter.receive(|flags| Ok(recv(stream, inbox.room(), flags)?.0)) {
            Ok(None | Some(0)) | Err(Errno::CONNRESET) => return Ok(()),
            Ok(Some(count)) => inbox.received(count),
            Err(error) => return Err(error).doing(|| "receive requests".to_owned()),
        }
        match answer(inbox.take()) {
            Ok(()) => {}
            Err(Errno::CONNRESET | Errno::PIPE) => return Ok(()),
            Err(error) => return Err(error).doing(|| "send replies".to_owned()),
        }
    }
}

/// Sends all of `bytes`. The client always receives when it cannot send, so this cannot block
/// forever.
fn send_all(stream: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
