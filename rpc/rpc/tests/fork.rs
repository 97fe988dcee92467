//! Channels and servers in a child of a fork: calls fail at once, not executed, and the parent's go
//! on. A program of one thread beside the background poller, which forks.

use apus::tokio::Endpoint;
use apus_rpc::{
    BlockingChannel, BoxFuture, Channel, Code, Execution, Handler, Request, Response, Server,
    Status,
};
use bytes::Bytes;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// A service that returns its argument.
struct Echo;

impl Handler for Echo {
    fn service(&self) -> &'static str {
        "test"
    }

    fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>> {
        Box::pin(async move { Ok(Response::new(request.into_body().into_bytes(100).await?)) })
    }
}

fn request(text: &'static str) -> Request {
    Request::new("test/echo", Bytes::from_static(text.as_bytes()))
}

/// Polls a future once.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn is_forked<T>(result: &Result<T, Status>) -> bool {
    result.as_ref().is_err_and(|status| {
        status.code() == Code::FailedPrecondition && status.execution() == Execution::NotExecuted
    })
}

/// Runs `check` in a child, and asserts that it holds there.
fn in_child(check: impl FnOnce() -> bool) {
    // SAFETY: No thread of this program has a lock that the child takes.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork fails");
    if child == 0 {
        let status = i32::from(!check());
        // SAFETY: The call has no memory of this program as an argument.
        unsafe { libc::exit(status) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the check fails in the child");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (control, served, channel) = runtime.block_on(async {
        let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr();
        let (control, served) = Server::new(server).add_service(Echo).start();
        (control, tokio::spawn(served), Channel::connect(to).await.unwrap())
    });
    let blocking = BlockingChannel::connect(channel.peer_addr()).unwrap();
    let call = |text| {
        runtime.block_on(async {
            let response = channel.call(request(text)).await.unwrap();
            assert_eq!(response.into_body().into_bytes(100).await.unwrap(), text);
        });
    };
    call("before");
    for _ in 0..6 {
        let mut begun = Box::pin(channel.call(request("begun")));
        assert!(poll(begun.as_mut()).is_pending());
        in_child(|| {
            let calls = poll(pin!(channel.call(request("child"))));
            let goes_on = poll(begun.as_mut());
            let is_refused = |polled: &Poll<_>| matches!(polled, Poll::Ready(it) if is_forked(it));
            is_refused(&calls)
                && is_refused(&goes_on)
                && is_forked(&blocking.call(request("child")))
        });
        runtime.block_on(async {
            let response = begun.await.unwrap();
            assert_eq!(response.into_body().into_bytes(100).await.unwrap(), "begun");
        });
        call("after");
    }
    drop((control, served));
    println!("all checks passed");
}
