//! quinn: QUIC, a datagram for each message. Always encrypted; lost datagrams are not
//! retransmitted.

use std::cell::RefCell;
use std::collections::HashMap;
use std::process::ExitCode;
use std::rc::Rc;

use bytes::Bytes;
use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Waits, answer, calls, number, run,
    serve_async,
};
use compare_quinn::{caller, listen};
use quinn::{Connection, Incoming};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

/// Maximum message length in the first packets of a connection, before MTU discovery.
const LONGEST: usize = 1_100;

struct Datagrams;

impl Peer for Datagrams {
    fn describe() -> Description {
        Description {
            name: "quinn-datagrams".to_owned(),
            package: Some("quinn".to_owned()),
            settings: "a runtime of one thread on each side, one connection, an unreliable datagram for each message, TLS 1.3 with ring"
                .to_owned(),
            advice: "its documentation recommends datagrams for what need not be repeated; segmentation offload is on by itself"
                .to_owned(),
            waits: Waits::Block,
            longest: Some(LONGEST),
            is_node: false,
            grows: false,
            class: Class::Sealed,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let (keys, bind) = (server.keys.clone(), server.bind);
        serve_async(server, async move || {
            let endpoint = listen(&keys, bind)?;
            let address = endpoint.local_addr()?;
            spawn_local(async move {
                while let Some(incoming) = endpoint.accept().await {
                    spawn_local(echo(incoming));
                }
            });
            Ok(address)
        })
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let endpoint = caller(client)?;
        Ok(calls(async move |server| {
            let connection = endpoint.connect(server, "localhost")?.await?;
            let waiting = Rc::new(RefCell::new(HashMap::new()));
            spawn_local(hand_out(connection.clone(), waiting.clone()));
            Ok(async move |request: Bytes| {
                let (sender, reply) = oneshot::channel();
                waiting.borrow_mut().insert(number(&request), sender);
                connection.send_datagram_wait(request).await?;
                Ok(reply.await?)
            })
        }))
    }
}

/// Passes each reply to the call that waits for it.
async fn hand_out(
    connection: Connection,
    waiting: Rc<RefCell<HashMap<Option<u64>, oneshot::Sender<Bytes>>>>,
) -> Result<(), Error> {
    loop {
        let reply = connection.read_datagram().await?;
        let waiter = waiting.borrow_mut().remove(&number(&reply)).ok_or("a reply to no request")?;
        // It may have ended.
        let _ = waiter.send(reply);
    }
}

/// Answers the datagrams of a connection until its end.
async fn echo(incoming: Incoming) -> Result<(), Error> {
    let connection = incoming.await?;
    loop {
        let request = connection.read_datagram().await?;
        let receipt = answer(&request);
        let reply = receipt.map_or(request, |receipt| receipt.to_vec().into());
        connection.send_datagram_wait(reply).await?;
    }
}

fn main() -> ExitCode {
    run::<Datagrams>()
}
