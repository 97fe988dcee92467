//! What does the server do with a connection?

use std::net::{Ipv4Addr, TcpStream};

use rustix::io::Errno;
use rustix::net::{SendFlags, recv, send};

use super::Sends;
use super::frames::{Frames, Inbox, frame};
use super::socket::{Settings, accept, listen_at};
use crate::baseline::wait::Waiter;
use crate::clock;
use crate::contender::{Plan, Replies, Side};
use crate::error::{Doing, Error};
use crate::meter::Meter;
use crate::process::Control;

/// Sends each message back.
pub(super) fn echo(plan: &Plan, sends: Sends, control: &mut Control) -> Result<Side, Error> {
    serve(plan, control, |frames, stream| match sends {
        Sends::Ready => send_all(stream, frames.bytes),
        Sends::One => frames.iter().try_for_each(|frame| send_all(stream, frame)),
    })?;
    Ok(Side::default())
}

/// Answers each message with a short one, and counts.
pub(super) fn absorb(plan: &Plan, control: &mut Control) -> Result<Side, Error> {
    let reply = frame(&Replies::SHORT);
    let mut meter = None;
    serve(plan, control, |frames, stream| {
        if frames.count == 0 {
            return Ok(());
        }
        let meter = meter.get_or_insert_with(|| Meter::start(plan));
        meter.count(clock::now(), frames.count as u64, frames.payload() as u64);
        (0..frames.count).try_for_each(|_| send_all(stream, &reply))
    })?;
    Ok(meter.map_or_else(Side::default, Meter::finish))
}

/// Receives messages on one connection until the client closes it, and gives them to `answer`.
fn serve(
    plan: &Plan,
    control: &mut Control,
    mut answer: impl FnMut(Frames<'_>, &TcpStream) -> Result<(), Errno>,
) -> Result<(), Error> {
    let (listener, address) = listen_at(Ipv4Addr::LOCALHOST.into(), &Settings::LOOPBACK)?;
    control.ready(address)?;
    let Some(stream) = accept(&listener, control.stop())? else { return Ok(()) };
    let waiter = Waiter::new(plan.poll, control.stop());
    let mut inbox = Inbox::default();
    loop {
        match waiter.receive(|flags| Ok(recv(&stream, inbox.room(), flags)?.0)) {
            Ok(None | Some(0)) | Err(Errno::CONNRESET) => return Ok(()),
            Ok(Some(count)) => inbox.received(count),
            Err(error) => return Err(error).doing(|| "receive requests".to_owned()),
        }
        match answer(inbox.take(), &stream) {
            Ok(()) => {}
            Err(Errno::CONNRESET | Errno::PIPE) => return Ok(()),
            Err(error) => return Err(error).doing(|| "send replies".to_owned()),
        }
    }
}

/// Sends all of it. The client always receives when it cannot send, so this does not wait for ever.
fn send_all(stream: &TcpStream, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
