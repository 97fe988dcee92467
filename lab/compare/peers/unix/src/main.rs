//! One Unix socket: the messages of the peer `tcp` between processes of one host.

use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener, UnixStream};
use std::process::ExitCode;

use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Wait, Waits, connections,
    free_address, name_of, run,
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
            is_node: false,
            grows: false,
            class: Class::SameHost,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let address = free_address(server.bind)?;
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

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let wait = client.wait;
        Ok(connections(move |server| {
            let stream = connect(server)?;
            stream.set_nonblocking(wait == Wait::Spin)?;
            Ok(Messages::new(stream))
        }))
    }
}

fn connect(address: SocketAddr) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&path(address)?)
}

/// An abstract name, not a file.
fn path(address: SocketAddr) -> io::Result<net::SocketAddr> {
    net::SocketAddr::from_abstract_name(name_of(address))
}

fn main() -> ExitCode {
    run::<Unix>()
}
