//! Shutdown of endpoints and runtimes, and what waiting tasks see of it.

use crate::{bytes, echo, on_each_runtime, pair, patient, patient_config, until};
use apus::tokio::Endpoint;
use apus::{Closed, Execution};
use apus_driver::loopback::LoopbackNetwork;
use std::time::Duration;

#[test]
fn shutting_down_ends_every_wait() {
    on_each_runtime(async || {
        let config = patient_config()
            .max_message(10_000)
            .max_send_bytes_per_peer(10_000)
            .max_send_bytes(10_000);
        let (a, b) = pair(&patient().config(config.build().unwrap())).await;
        let address = b.local_addr();
        let on = |a: &Endpoint| a.clone();
        let requests: Vec<_> = (0..2)
            .map(|_| {
                let a = on(&a);
                tokio::spawn(async move { a.recv_request().await.map(drop) })
            })
            .collect();
        // b never responds; the second call waits for room.
        let calls: Vec<_> = (0..2)
            .map(|i| {
                let a = on(&a);
                tokio::spawn(async move { a.call(address, bytes(i, 9_000)).await })
            })
            .collect();
        let ends = tokio::spawn({
            let a = on(&a);
            async move { a.recv_completion().await.map(drop) }
        });
        let drain = tokio::spawn({
            let a = on(&a);
            async move { a.drain(Duration::MAX).await }
        });
        until(|| a.metrics().protocol.live.client_rpcs == 1).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        a.shutdown();
        for request in requests {
            assert!(matches!(request.await.unwrap(), Err(Closed::ShutDown)));
        }
        for call in calls {
            let error = call.await.unwrap().unwrap_err();
            assert!(error.to_string().contains("shut down"), "{error}");
        }
        assert!(matches!(ends.await.unwrap(), Err(Closed::ShutDown)));
        drain.await.unwrap();
        assert!(matches!(a.recv_request().await, Err(Closed::ShutDown)));
        assert!(a.send(address, "more", 0).await.is_err());
        assert!(a.info().is_empty());
    });
}

#[test]
fn completions_from_before_a_shutdown_can_be_received_after_it() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        client.send(server.local_addr(), "x", 5).await.unwrap();
        server.recv_request().await.unwrap().reply("y").await.unwrap();
        until(|| client.metrics().protocol.progress.client_responses_done == 1).await;
        client.shutdown();
        let end = client.recv_completion().await.unwrap();
        assert_eq!((end.cookie, end.result.unwrap()), (5, "y".into()));
        assert!(client.recv_completion().await.is_err());
    });
}

#[test]
fn the_last_clone_ends_the_endpoint() {
    on_each_runtime(async || {
        let (a, b) = pair(&patient()).await;
        let address = a.local_addr();
        let clone = a.clone();
        drop(a);
        let call = b.call(address, "still there?");
        let serve = async { clone.recv_request().await.unwrap().reply("yes").await.unwrap() };
        assert_eq!(tokio::join!(call, serve).0.unwrap(), "yes");
        drop(clone);
        let error = b.call(address, "and now?").await.unwrap_err();
        // Either the port is closed or the peer is silent: its task ends when it is polled next.
        assert_ne!(error.execution(), Execution::Executed, "{error}");
    });
}

#[test]
fn a_request_may_outlive_its_endpoint() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        client.send(server.local_addr(), "x", 5).await.unwrap();
        let request = server.recv_request().await.unwrap();
        drop(server);
        assert!(request.reply("too late").await.is_err());
        let error = client.recv_completion().await.unwrap().result.unwrap_err();
        assert!(error.to_string().contains("without a reply"), "{error}");
        assert_eq!(error.execution, Execution::Unknown, "the application had it");
    });
}

#[test]
fn a_call_to_a_closed_port_fails_at_once() {
    on_each_runtime(async || {
        let network = LoopbackNetwork::new();
        let client = patient().with_driver(Box::new(network.host())).await.unwrap();
        let gone = network.host();
        let address = apus_driver::Driver::local_addr(&gone);
        drop(gone);
        let error = client.call(address, "hello").await.unwrap_err();
        assert!(error.to_string().contains("port closed"), "{error}");
        assert_eq!(error.execution(), Execution::NotExecuted);
    });
}

#[test]
fn bad_addresses_are_named() {
    on_each_runtime(async || {
        let error = Endpoint::bind("no such address").await.unwrap_err();
        assert!(error.to_string().contains("no such address"), "{error}");
        let taken = Endpoint::bind("127.0.0.1:0").await.unwrap();
        let error = Endpoint::bind(taken.local_addr()).await.unwrap_err();
        assert!(error.to_string().contains(&taken.local_addr().to_string()), "{error}");
    });
}

/// The runtime ends before the endpoint, without a panic or a hang.
#[test]
fn a_runtime_may_end_before_its_endpoint() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (client, server) = runtime.block_on(async {
        let (client, server) = pair(&patient()).await;
        echo(server.clone());
        assert_eq!(client.call(server.local_addr(), "x").await.unwrap(), "x");
        (client, server)
    });
    drop(runtime);
    client.shutdown();
    assert!(client.info().is_empty());
    drop(server);
}

/// A runtime that cannot run the endpoint is an error of the constructor.
#[test]
fn a_runtime_without_io_or_time_or_none_is_an_error() {
    let without = |builder: &mut tokio::runtime::Builder| {
        let runtime = builder.build().unwrap();
        let opened = runtime.block_on(async {
            [
                Endpoint::client().await.err(),
                Endpoint::bind("127.0.0.1:0").await.err(),
                Endpoint::builder()
                    .with_driver(Box::new(LoopbackNetwork::new().host()))
                    .await
                    .err(),
            ]
        });
        for error in opened {
            let text = error.expect("the endpoint cannot work").to_string();
            assert!(text.contains("IO or time disabled"), "{text}");
        }
    };
    without(&mut tokio::runtime::Builder::new_current_thread());
    without(tokio::runtime::Builder::new_current_thread().enable_time());
    without(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io());

    // Polled by hand: the future needs no runtime to fail.
    let mut opening = std::pin::pin!(Endpoint::client());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = opening.as_mut().poll(&mut context) else {
        panic!("there is no runtime to wait for")
    };
    assert!(error.to_string().contains("outside of a tokio runtime"), "{error}");
}
