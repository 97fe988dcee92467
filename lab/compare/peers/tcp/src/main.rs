//! One TCP connection: length-prefixed messages; each write sends all queued messages.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;

use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Wait, Waits, connections, run,
};
use compare_tcp::Messages;

struct Tcp;

impl Peer for Tcp {
    fn describe() -> Description {
        Description {
            name: "tcp".to_owned(),
            package: None,
            settings: "one connection, TCP_NODELAY, four bytes of length before each message, messages that are ready leave in one write"
                .to_owned(),
            advice: "TCP_NODELAY and whole messages in each write, as RFC 1122 and tcp(7) say for requests and replies".to_owned(),
            waits: Waits::Both,
            longest: None,
            is_node: true,
            grows: true,
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let listener = TcpListener::bind(server.bind)?;
        let address = listener.local_addr()?;
        server.stop().wake_with(move || drop(TcpStream::connect(address)));
        server.ready(address)?;
        let stop = server.stop();
        loop {
            let (stream, _) = listener.accept()?;
            if stop.is_asked() {
                return Ok(());
            }
            Messages::new(ready(stream, server.wait)?).serve(|| stop.is_asked())?;
        }
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let wait = client.wait;
        Ok(connections(move |server| Ok(Messages::new(ready(TcpStream::connect(server)?, wait)?))))
    }
}

fn ready(stream: TcpStream, wait: Wait) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(wait == Wait::Spin)?;
    Ok(stream)
}

fn main() -> ExitCode {
    run::<Tcp>()
}
