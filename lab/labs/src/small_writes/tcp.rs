//! Commands over a TCP connection.
//!
//! The connection has the system's defaults, except for the option in the variant's name.

use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_cork, set_tcp_nodelay, set_tcp_quickack};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use super::message::{HEAD, LENGTH, Messages};
use super::tally::{Plan, Tally, tally};
use super::variant::{Reading, Variant, Writing};
use apus_bench::contenders::baseline::stream::server::accept;
use apus_bench::contenders::baseline::waiter::Waiter;
use apus_measure::process::wake_on_stop;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Stop};

/// Echoes commands until the client disconnects.
pub(super) fn serve(variant: &Variant, plan: &Plan, control: &mut Control) -> Result<(), Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing(|| "listen".to_owned())?;
    let address = listener.local_addr().doing(|| "read the port".to_owned())?;
    control.ready(address)?;
    let stop = control.stop().clone();
    let Some(stream) = accept(&listener, &stop)? else { return Ok(()) };
    let connection = Connection::new(stream, variant, plan, &stop)?;
    let mut command = [0; LENGTH];
    while connection.read(&mut command)? {
        connection.write_whole(&command)?;
    }
    Ok(())
}

/// Writes commands and reads their echoes.
pub(super) fn drive(
    variant: &Variant,
    plan: &Plan,
    server: SocketAddr,
    stop: &Stop,
) -> Result<Tally, Error> {
    let stream = TcpStream::connect(server).doing(|| format!("connect to {server}"))?;
    if variant.writing == Writing::NoDelay {
        set_tcp_nodelay(&stream, true).doing(|| "set TCP_NODELAY".to_owned())?;
    }
    let connection = Connection::new(stream.into(), variant, plan, stop)?;
    let messages = Messages::draw(plan.seed);
    let mut reply = [0; LENGTH];
    tally(plan, |number| {
        connection.write(variant.writing, messages.get(number))?;
        if connection.read(&mut reply)? {
            return messages.expect(number, &reply).map(|()| true);
        }
        if stop.is_asked() {
            Ok(false)
        } else {
            Err(Error::Peer(format!("{server} has disconnected")))
        }
    })
}

/// One end of the connection.
struct Connection<'a> {
    stream: OwnedFd,
    waiter: Waiter<'a>,
    reading: Reading,
    /// Whether a quick acknowledgement is requested after each read, by the server of a variant.
    quick_ack: bool,
}

impl<'a> Connection<'a> {
    fn new(stream: OwnedFd, variant: &Variant, plan: &Plan, stop: &'a Stop) -> Result<Self, Error> {
        wake_on_stop(&stream, stop)?;
        Ok(Self {
            stream,
            waiter: Waiter::new(plan.poll, stop),
            reading: variant.reading,
            quick_ack: variant.writing == Writing::QuickAck,
        })
    }

    /// Reads a command; `false` if the connection has ended.
    fn read(&self, into: &mut [u8; LENGTH]) -> Result<bool, Error> {
        match self.reading {
            Reading::Whole => self.fill(into),
            Reading::Pieces => {
                let (head, rest) = into.split_at_mut(HEAD);
                Ok(self.fill(head)? && self.fill(rest)?)
            }
        }
    }

    fn fill(&self, into: &mut [u8]) -> Result<bool, Error> {
        let mut filled = 0;
        while filled < into.len() {
            let received = self
                .waiter
                .receive(|flags: RecvFlags| Ok(recv(&self.stream, &mut into[filled..], flags)?.0));
            match received {
                Ok(None | Some(0)) | Err(Errno::CONNRESET) => return Ok(false),
                Ok(Some(count)) => filled += count,
                Err(error) => return Err(error).doing(|| "receive".to_owned()),
            }
            if self.quick_ack {
                // The option is valid for one acknowledgement: tcp(7).
                set_tcp_quickack(&self.stream, true).doing(|| "set TCP_QUICKACK".to_owned())?;
            }
        }
        Ok(true)
    }

    fn write(&self, writing: Writing, command: &[u8]) -> Result<(), Error> {
        let (head, rest) = command.split_at(HEAD);
        let cork = |corked| set_tcp_cork(&self.stream, corked).doing(|| "set TCP_CORK".to_owned());
        match writing {
            Writing::Whole => self.write_whole(command),
            Writing::Split | Writing::NoDelay | Writing::QuickAck => {
                self.write_whole(head)?;
                self.write_whole(rest)
            }
            Writing::More => {
                self.send(head, SendFlags::MORE)?;
                self.write_whole(rest)
            }
            Writing::Cork => {
                cork(true)?;
                self.write_whole(head)?;
                self.write_whole(rest)?;
                cork(false)
            }
            Writing::Gather => {
                let slices = [IoSlice::new(head), IoSlice::new(rest)];
                let mut nothing = SendAncillaryBuffer::default();
                let sent = sendmsg(&self.stream, &slices, &mut nothing, SendFlags::NOSIGNAL);
                all(sent, command.len())
            }
        }
    }

    fn write_whole(&self, bytes: &[u8]) -> Result<(), Error> {
        self.send(bytes, SendFlags::empty())
    }

    fn send(&self, bytes: &[u8], flags: SendFlags) -> Result<(), Error> {
        all(send(&self.stream, bytes, flags | SendFlags::NOSIGNAL), bytes.len())
    }
}

/// Checks that the socket took all bytes. Its buffer is empty before each exchange, so it takes 64
/// bytes or none.
fn all(sent: Result<usize, Errno>, length: usize) -> Result<(), Error> {
    match sent.doing(|| "send".to_owned())? {
        sent if sent == length => Ok(()),
        sent => Err(Error::Peer(format!("the system took {sent} of {length} bytes"))),
    }
}
