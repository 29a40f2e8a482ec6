"""The files of examples/cluster: their syntax, and what the scripts do with programs that only say how they are called."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/cluster"
TRAIN = ["tercel", "train", "/data", "--model", "dlrm", "--out", "/run", "--resume", "auto", "--threads"]


class ClusterExamples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def put_program(self, name, script):
        """A program that writes its arguments to a file of its name, in the folder, and does what the script says."""
        path = self.folder / name
        path.write_text(f'#!/usr/bin/env bash\nprintf "%s\\n" "$@" >"{path}.called.tmp"\n'
                        f'mv "{path}.called.tmp" "{path}.called"\n{script}\n')
        path.chmod(0o755)

    def call_of(self, name):
        path = self.folder / f"{name}.called"
        return path.read_text().splitlines() if path.exists() else None

    def start(self, script, **variables):
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", **variables}
        return subprocess.Popen(["bash", EXAMPLES / script, "/data", "/run"], env=environment)

    def test_mpirun_trains_on_the_hosts(self):
        self.put_program("mpirun", "exit 7")
        self.assertEqual(self.start("mpirun.sh").wait(60), 7)
        call = self.call_of("mpirun")
        self.assertEqual(call[call.index("--hostfile") + 1], str(EXAMPLES / "hosts"))
        self.assertEqual(call[call.index("tercel"):], [*TRAIN, "16"])

    def run_slurm_job(self, srun, signals):
        self.put_program("srun", srun)
        self.put_program("scontrol", "exit 0")
        job = self.start("train.sbatch", SLURM_CPUS_PER_TASK="4", SLURM_JOB_ID="12")
        if signals:
            for _ in range(6000):
                if (self.folder / "ready").exists():
                    break
                time.sleep(0.01)
            job.send_signal(signal.SIGUSR1)
        code = job.wait(60)
        call = self.call_of("srun")
        self.assertIn("--mpi=pmix", call)
        self.assertEqual(call[call.index("tercel"):], [*TRAIN, "4"])
        return code

    def test_slurm_job_ends_with_the_code_of_its_ranks(self):
        for code in 0, 3, 137:
            self.assertEqual(self.run_slurm_job(f"exit {code}", signals=False), code)
            self.assertIsNone(self.call_of("scontrol"))

    def test_slurm_job_goes_on_after_its_time(self):
        stops = f'trap "sleep 0.3; exit 143" TERM; touch {self.folder}/ready; while true; do sleep 0.05; done'
        self.run_slurm_job(stops, signals=True)
        self.assertEqual(self.call_of("scontrol"), ["requeue", "12"])

    def test_slurm_job_that_ends_in_time_does_not_go_on(self):
        ends = f'trap "sleep 0.3; exit 0" TERM; touch {self.folder}/ready; while true; do sleep 0.05; done'
        self.assertEqual(self.run_slurm_job(ends, signals=True), 0)
        self.assertIsNone(self.call_of("scontrol"))

    def test_mpijob_is_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("needs python3-yaml")
        job = yaml.safe_load((EXAMPLES / "mpijob.yaml").read_text())
        self.assertEqual((job["apiVersion"], job["kind"]), ("kubeflow.org/v2beta1", "MPIJob"))
        replicas = job["spec"]["mpiReplicaSpecs"]
        self.assertEqual(set(replicas), {"Launcher", "Worker"})
        command = replicas["Launcher"]["template"]["spec"]["containers"][0]["command"]
        ranks = job["spec"]["slotsPerWorker"] * replicas["Worker"]["replicas"]
        self.assertEqual(command[command.index("-n") + 1], str(ranks))
        pod = replicas["Worker"]["template"]["spec"]
        self.assertEqual(pod["containers"][0]["volumeMounts"][0]["name"], pod["volumes"][0]["name"])


if __name__ == "__main__":
    unittest.main()
