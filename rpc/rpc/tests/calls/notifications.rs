//! One-way calls: waiting, counts, and inherited context.

use crate::{endpoints, serve, until};
use apus_rpc::{Channel, Code, Context, Notifications, Request, Response, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_notification_is_executed_once_and_counted_when_it_has_ended() {
    let (open, executed) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU64::new(0)));
    let (door, count) = (open.clone(), executed.clone());
    let (channel, _) = serve(move |request: Request| {
        let (door, count) = (door.clone(), count.clone());
        async move {
            let _ = door.acquire().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            match request.into_body().into_bytes(10).await?.is_empty() {
                true => Err(Status::new(Code::InvalidArgument, "empty")),
                false => Ok(Response::default()),
            }
        }
    })
    .await;
    let notifications = Notifications::default();
    for body in ["a", "b", ""] {
        let request = Request::new("test/note", body.as_bytes().to_vec());
        notifications.send(&channel, request).await.unwrap();
    }
    let counts = notifications.counts();
    assert_eq!((counts.sent, counts.outstanding()), (3, 3), "none is waited for");
    open.add_permits(3);
    notifications.ended().await;
    let counts = notifications.counts();
    assert_eq!((counts.answered, counts.failed, counts.outstanding()), (2, 1, 0));
    assert_eq!(executed.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn the_limit_holds_back_until_one_has_ended() {
    let open = Arc::new(Semaphore::new(0));
    let door = open.clone();
    let (channel, control) = serve(move |_| {
        let door = door.clone();
        async move {
            door.acquire().await.unwrap().forget();
            Ok(Response::default())
        }
    })
    .await;
    let notifications = Notifications::new(2);
    let send = {
        let (notifications, channel) = (notifications.clone(), channel.clone());
        tokio::spawn(async move {
            for _ in 0..3 {
                notifications.send(&channel, Request::new("test/note", Vec::new())).await.unwrap();
            }
        })
    };
    until(|| control.running() == 2).await;
    assert!(!send.is_finished() && notifications.counts().sent == 2);
    open.add_permits(1);
    send.await.unwrap();
    open.add_permits(2);
    notifications.ended().await;
    assert_eq!(notifications.counts().answered, 3);
}

#[tokio::test]
async fn what_cannot_be_sent_is_an_error_and_not_counted() {
    let (client, server) = endpoints().await;
    let channel = Channel::new(client, server.local_addr());
    let notifications = Notifications::default();
    let context = Context { deadline: Some(Instant::now()), trace: None };
    let request = Request::new("test/note", Vec::new());
    let status = context.scope(notifications.send(&channel, request)).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "the deadline is inherited");
    assert_eq!(notifications.counts().sent, 0);
    // The server receives nothing, so the deadline ends the call. On a busy machine the time may
    // have passed before the call is made: then the next one counts.
    while notifications.counts().sent == 0 {
        let request = Request::new("test/note", Vec::new()).with_timeout(Duration::from_millis(5));
        let sent = notifications.send(&channel, request).await;
        assert!(sent.is_ok() || sent.unwrap_err().code() == Code::DeadlineExceeded);
    }
    notifications.ended().await;
    assert_eq!(notifications.counts().failed, 1);
}
