"""Whether a file is a PodMonitor of the Prometheus operator: prints what is wrong, and ends with 1.

Run by test_kubernetes.py with the Python that `./dev test service` installs cloudcoil.models.prometheus-operator for: pydantic's classes, generated
from the operator's CustomResourceDefinition (monitoring.coreos.com/v1).
"""

import sys

import pydantic
import yaml
from cloudcoil.models.prometheus_operator import v1


def main(path):
    with open(path) as file:
        document = yaml.safe_load(file)
    try:
        # As an API server does: by the names of the definition alone, and nothing beside them.
        v1.PodMonitor.model_validate(document, extra="forbid", by_alias=True, by_name=False)
    except pydantic.ValidationError as error:
        print(error)
        return 1
    print(f"{path} is a {document['kind']} of {document['apiVersion']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
