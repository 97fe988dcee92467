//! Async endpoints: futures that were polled before the fork, and the runtime itself.

use crate::process::{Child, End};
use apus::tokio::Endpoint;
use apus::{CallError, Closed};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Builder;

/// Polls a future once.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

pub(crate) fn futures_and_the_runtime_are_the_parents() {
    let mut runtime = Some(Builder::new_current_thread().enable_all().build().unwrap());
    let (server, client) = runtime.as_ref().unwrap().block_on(async {
        (Endpoint::bind("127.0.0.1:0").await.unwrap(), Endpoint::client().await.unwrap())
    });
    let to = server.local_addr();
    for fork in 0..6 {
        let mut before = Box::pin(client.call(to, "before the fork"));
        assert!(poll(before.as_mut()).is_pending());
        let mut waiting = Box::pin(server.recv_request());
        let _ = poll(waiting.as_mut());
        let mut futures = Some((before, waiting));
        let child = Child::fork(if fork % 2 == 0 { End::Exit } else { End::Abandon }, || {
            let (mut before, waiting) = futures.take().unwrap();
            if fork % 3 == 0 {
                let ended = poll(before.as_mut());
                assert!(matches!(ended, Poll::Ready(Err(CallError::Closed(Closed::Forked(_))))));
            }
            drop((before, waiting));
            let ended = poll(pin!(client.call(to, "x")));
            assert!(matches!(ended, Poll::Ready(Err(CallError::Closed(Closed::Forked(_))))));
            let ended = poll(pin!(server.recv_request()));
            assert!(matches!(ended, Poll::Ready(Err(Closed::Forked(_)))));
            assert!(matches!(server.try_recv_request(), Err(Closed::Forked(_))));
            // The parent waits for the events of sockets that it shares with this copy.
            drop(runtime.take());
        });
        child.join();
        let (before, waiting) = futures.take().unwrap();
        runtime.as_ref().unwrap().block_on(async {
            let serve = async {
                waiting.await.unwrap().reply("first").await.unwrap();
                server.recv_request().await.unwrap().reply("second").await.unwrap();
            };
            let call = async {
                assert_eq!(before.await.unwrap(), "first");
                assert_eq!(client.call(to, "after").await.unwrap(), "second");
            };
            tokio::join!(serve, call);
            assert!(client.drain(Duration::from_secs(60)).await);
        });
    }
}
