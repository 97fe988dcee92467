//! One Unix socket: the messages of the peer `tcp` between processes of one host.

use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener, UnixStream};
use std::process::ExitCode;

use compare_kit::{
    Class, Client, Description, Error, Measured, Peer, Server, Wait, Waits, free_address,
    measure_connection, name_of, run,
};
use compare_tcp::Messages;

struct Unix;

impl Peer for Unix {
    fn describe() -> Description {
        Description {
            name: "unix".to_owned(),
            package: None,
            settings: "one stream, four bytes of length before each message, messages that are ready leave in one write"
                .to_owned(),
            advice: "whole messages in each write; unix(7) has no setting for latency".to_owned(),
            waits: Waits::Both,
            longest: None,
            class: Class::SameHost,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let address = free_address()?;
        let listener = UnixListener::bind_addr(&path(address)?)?;
        server.stop().wake_with(move || drop(connect(address)));
        server.ready(address)?;
        let stop = server.stop();
        loop {
            let (stream, _) = listener.accept()?;
            if stop.is_asked() {
                return Ok(());
            }
            stream.set_nonblocking(server.wait == Wait::Spin)?;
            Messages::new(stream).serve(|| stop.is_asked())?;
        }
    }

    fn measure(client: &Client) -> Result<Measured, Error> {
        let stream = connect(client.server)?;
        stream.set_nonblocking(client.wait == Wait::Spin)?;
        measure_connection(client, &mut Messages::new(stream))
    }
}

fn connect(address: SocketAddr) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&path(address)?)
}

/// A name that is no file.
fn path(address: SocketAddr) -> io::Result<net::SocketAddr> {
    net::SocketAddr::from_abstract_name(name_of(address))
}

fn main() -> ExitCode {
    run::<Unix>()
}
