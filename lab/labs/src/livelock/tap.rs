//! A tap: access of a program to the packets of an interface.
//!
//! A tap is a packet socket (packet(7)). The sending thread puts packets for the interface into the
//! socket's buffer, on its own core, and drops packets if the buffer is full. It stands for a
//! network card with its ring of buffers.

use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{LinkAddr, MsgFlags, MultiHeaders, sendmmsg};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::frame::Frame;
use apus_testbed::error::{Doing, Error};
use apus_testbed::packet_socket;

pub(super) use apus_testbed::packet_socket::Use;

/// Interval at which a sleeping thread checks for the end. Packets wake it earlier.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The packets of one interface.
#[derive(Debug)]
pub(super) struct Tap {
    socket: OwnedFd,
}

impl Tap {
    /// Opens a tap on the interface of that name, in the namespace of this process.
    pub(super) fn open(interface: &str, purpose: Use) -> Result<Self, Error> {
        let socket = packet_socket::open(interface, purpose)?;
        Ok(Self { socket })
    }

    /// Sets the longest wait of [`Tap::wait_and_take`].
    pub(super) fn set_timeout(&self, timeout: Duration) -> Result<(), Error> {
        set_socket_timeout(&self.socket, Timeout::Recv, Some(timeout))
            .doing(|| "set a time limit".to_owned())
    }

    /// Takes the next packet, and sleeps until it arrives; `false` if none arrived before the
    /// timeout.
    pub(super) fn wait_and_take(&self, frame: &mut Frame) -> Result<bool, Error> {
        self.receive(frame, RecvFlags::TRUNC)
    }

    /// Takes the next packet if there is one.
    pub(super) fn take(&self, frame: &mut Frame) -> Result<bool, Error> {
        self.receive(frame, RecvFlags::TRUNC | RecvFlags::DONTWAIT)
    }

    fn receive(&self, frame: &mut Frame, flags: RecvFlags) -> Result<bool, Error> {
        match recv(&self.socket, frame.room(), flags) {
            // With TRUNC the number is the packet's length, even if the buffer is shorter.
            Ok((_, len)) => {
                frame.filled(len);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error).doing(|| "receive a packet".to_owned()),
        }
    }

    /// Sleeps until a packet can be taken, for at most `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let mut sockets = [PollFd::new(&self.socket, PollFlags::IN)];
        let time = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match poll(&mut sockets, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error).doing(|| "wait for a packet".to_owned()),
        }
    }

    /// Sends a packet; `false` if the system has no room for it.
    pub(super) fn send(&self, frame: &Frame) -> Result<bool, Error> {
        match send(&self.socket, frame.packet(), SendFlags::DONTWAIT) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(false),
            Err(error) => Err(error).doing(|| "send a packet".to_owned()),
        }
    }
}

/// Packets that are sent repeatedly, several with each system call.
pub(super) struct Burst<'a> {
    tap: &'a Tap,
    packets: Vec<[IoSlice<'a>; 1]>,
    addresses: Vec<Option<LinkAddr>>,
    headers: MultiHeaders<LinkAddr>,
}

impl<'a> Burst<'a> {
    /// Returns a burst of these packets.
    pub(super) fn new(tap: &'a Tap, packets: &'a [impl AsRef<[u8]>]) -> Self {
        let addresses = vec![None; packets.len()];
        let headers = MultiHeaders::preallocate(packets.len(), None);
        let packets = packets.iter().map(|packet| [IoSlice::new(packet.as_ref())]).collect();
        Self { tap, packets, addresses, headers }
    }

    /// Sends the first `count` frames. Returns the number that the system took.
    pub(super) fn send(&mut self, count: usize) -> Result<usize, Error> {
        let count = count.min(self.packets.len());
        let socket = self.tap.socket.as_raw_fd();
        let packets = self.packets[..count].iter();
        let addresses = &self.addresses[..count];
        let none = [];
        match sendmmsg(socket, &mut self.headers, packets, addresses, none, MsgFlags::empty()) {
            Ok(sent) => Ok(sent.count()),
            Err(nix::Error::EAGAIN | nix::Error::ENOBUFS | nix::Error::EINTR) => Ok(0),
            Err(error) => Err(error).doing(|| "send packets".to_owned()),
        }
    }
}
