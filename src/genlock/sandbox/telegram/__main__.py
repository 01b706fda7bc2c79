"""Run only the Telegram simulator: `python -m genlock.sandbox.telegram --port 8090 --token 42:sandbox`."""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from genlock.sandbox.telegram.simulator import running_telegram


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default="42:sandbox")
    parser.add_argument("--state", type=Path, help="folder that keeps users, chats and files")
    parser.add_argument("--kie", help="URL of the Kie.ai simulator whose faults the page controls")
    parser.add_argument("--limiter", action="store_true", help="apply Telegram's rate limits")
    parser.add_argument("--speed", type=float, default=1.0, help="factor by which time-outs and retries are shortened")
    return parser.parse_args()


async def main(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with running_telegram(
        token=options.token,
        host=options.host,
        port=options.port,
        limiter=options.limiter,
        speed=options.speed,
        folder=options.state,
        seed=None,
        kie_url=options.kie,
    ) as telegram:
        addresses = {"url": telegram.url, "token": telegram.token, "page_url": telegram.page_url}
        sys.stdout.write(json.dumps(addresses) + "\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(read_arguments()))
