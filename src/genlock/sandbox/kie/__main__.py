"""Run only the Kie.ai simulator: `python -m genlock.sandbox.kie`."""

import argparse
import asyncio
import json
import sys

from genlock.sandbox.kie.simulator import KieSimulator, running_kie

PORT = 8081


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=PORT, help="port of the API; files are at the next one; 0: any")
    parser.add_argument("--credits", type=float, default=100_000.0)
    parser.add_argument("--speed", type=float, default=60.0, help="factor by which tasks are faster than in reality")
    parser.add_argument("--creates-per-10-seconds", type=int, default=20)
    parser.add_argument("--queries-per-second", type=int, default=10)
    parser.add_argument("--same-media", action="store_true", help="give all results of a kind the same content")
    parser.add_argument("--json", action="store_true", help="print the URLs as one line of JSON")
    return parser.parse_args()


async def main(options: argparse.Namespace) -> None:
    async with running_kie(
        seed=None,
        port=options.port,
        files_port=options.port and options.port + 1,
        credits_=options.credits,
        speed=options.speed,
        create_limit=(options.creates_per_10_seconds, 10.0),
        status_limit=(options.queries_per_second, 1.0),
        same_media=options.same_media,
    ) as kie:
        sys.stdout.write(_json(kie) if options.json else _settings(kie))
        sys.stdout.flush()
        await asyncio.Event().wait()


def _json(kie: KieSimulator) -> str:
    return json.dumps({"url": kie.url, "files_url": kie.files_url, "key": kie.key}) + "\n"


def _settings(kie: KieSimulator) -> str:
    return (
        f"GENLOCK_KIE_API_URL={kie.url}\nGENLOCK_KIE_UPLOAD_URL={kie.url}\nGENLOCK_KIE_API_KEY={kie.key}\n"
        f"# results at {kie.files_url}; faults at {kie.url}/_control; stop with Ctrl-C\n"
    )


if __name__ == "__main__":
    try:
        asyncio.run(main(read_arguments()))
    except KeyboardInterrupt:
        sys.exit(0)
