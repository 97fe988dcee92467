//! The watcher: captures the packets of an interface.
//!
//! The kernel stores each packet with its time in the socket's buffer, which is read at the end. So
//! the watcher sleeps during the exchanges, and times are arrival times, not read times.

use std::io::IoSliceMut;
use std::os::fd::AsRawFd;

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::counters::Counters;
use super::packet::Packet;
use apus_testbed::error::{Doing, Error};
use apus_testbed::packet_socket::{self, Use};
use apus_testbed::process::{Control, NO_ADDRESS};

/// The captured packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Captured {
    /// In order of arrival.
    pub(super) packets: Vec<Packet>,
    /// Counters of the kernel during the capture; `None` if it has none.
    pub(super) counted: Option<Counters>,
}

/// Requested bytes of the buffer; the system may grant less. Chosen by us: ten times the packets of
/// a capture with the kernel's overhead.
const BUFFER: usize = 2 << 20;

/// The longest packet of interest.
const LONGEST: usize = 2048;

/// Watches until it is stopped.
pub(super) fn agent(interface: &str, control: &mut Control) -> Result<Value, Error> {
    let socket = packet_socket::open(interface, Use::Receive)?;
    setsockopt(&socket, ReceiveTimestampns, &true).doing(|| "request timestamps".to_owned())?;
    set_socket_recv_buffer_size(&socket, BUFFER).doing(|| "set SO_RCVBUF".to_owned())?;
    let before = Counters::now();
    control.ready(NO_ADDRESS)?;
    control.stop().wait();
    let counted = before.zip(Counters::now()).map(|(before, after)| after.since(before));
    let mut packets = Vec::new();
    let mut frame = [0; LONGEST];
    while let Some((at, length)) = take(&socket, &mut frame)? {
        packets.extend(Packet::parse(at, &frame[..length]));
    }
    Ok(json!(Captured { packets, counted }))
}

/// Takes the next packet from the buffer. Returns its time and its length.
fn take(socket: &impl AsRawFd, frame: &mut [u8]) -> Result<Option<(u64, usize)>, Error> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut room = [IoSliceMut::new(frame)];
    let flags = MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<()>(socket.as_raw_fd(), &mut room, Some(&mut control), flags) {
        Ok(message) => message,
        Err(nix::Error::EAGAIN) => return Ok(None),
        Err(error) => return Err(error).doing(|| "receive a packet".to_owned()),
    };
    let length = message.bytes;
    let times = message.cmsgs().doing(|| "read a packet's time".to_owned())?;
    let time = times.into_iter().find_map(|each| match each {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    });
    let time = time.ok_or_else(|| Error::Peer("a packet without its time".to_owned()))?;
    // The system's clock is after 1970.
    let at = time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned();
    Ok(Some((at, length)))
}
