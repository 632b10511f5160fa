//! A transport of any kind behind one type.
//!
//! Rule: the client of rmcp is generic over its transport, and compiles to 200,000 lines of LLVM IR for each type. With
//! one type it is compiled once. The fault of a transport is passed on whole, so that its causes can still be told apart.

use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use crate::failure::TransportFault;

/// A transport of any kind.
pub(crate) struct AnyTransport(Box<dyn ErasedTransport>);

/// [`Transport`], with boxed futures and faults.
trait ErasedTransport: Send {
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> BoxFuture<'static, Result<(), TransportFault>>;

    fn receive(&mut self) -> BoxFuture<'_, Option<RxJsonRpcMessage<RoleClient>>>;

    fn close(&mut self) -> BoxFuture<'_, Result<(), TransportFault>>;
}

impl AnyTransport {
    /// The transport behind the one type.
    pub(crate) fn new(transport: impl Transport<RoleClient> + 'static) -> Self {
        Self(Box::new(transport))
    }
}

impl<T: Transport<RoleClient>> ErasedTransport for T {
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> BoxFuture<'static, Result<(), TransportFault>> {
        let sent = Transport::send(self, message);
        Box::pin(async move { sent.await.map_err(TransportFault::new) })
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<RxJsonRpcMessage<RoleClient>>> {
        Box::pin(Transport::receive(self))
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), TransportFault>> {
        Box::pin(async move { Transport::close(self).await.map_err(TransportFault::new) })
    }
}

impl Transport<RoleClient> for AnyTransport {
    type Error = TransportFault;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.0.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.close()
    }
}
